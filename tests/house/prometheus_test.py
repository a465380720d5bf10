# SPDX-License-Identifier: Apache-2.0
"""The endpoint for Prometheus, read by the parser of its Python client, and the names in Grafana's dashboard."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import written_run
from prometheus_client.openmetrics.parser import text_string_to_metric_families

HOUSE = pathlib.Path(__file__).resolve().parents[2]
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def events(run, kind):
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def address_of(run):
    """Written by the endpoint itself, on another thread."""
    for _ in range(600):
        for finding in events(run, "finding"):
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/metrics", finding["text"]):
                return found[0]
        time.sleep(0.1)
    raise RuntimeError("no address among the findings")


def ask(address):
    with OPENER.open(address, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples_of(text):
    """{(name, ((label, value), ...)): value}; two samples of one name and labels are an error."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def sockets_of(process):
    folder = f"/proc/{process}/fd"
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:  # closed since
            pass
    return sum(link.startswith("socket:") for link in links)


class Endpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name)

    def written(self, last, *logs):
        session = written_run.WrittenRun(self.run_folder, 0, last, 400, *logs)
        self.addCleanup(session.kill)
        return session

    def read(self):
        return samples_of(ask(address_of(self.run_folder))[1])

    def test_shows_what_the_log_has(self):
        self.written(300, "prometheus:0")
        found = self.read()
        step, evaluated = events(self.run_folder, "step")[-1], events(self.run_folder, "evaluated")[-1]
        for name, value in step["scalars"].items():
            self.assertAlmostEqual(found["stoker_scalar", (("name", name),)], value, places=7)
        for name, value in evaluated["metrics"].items():
            self.assertEqual(found["stoker_evaluation", (("metric", name), ("split", "val"))], value)
        self.assertEqual(found["stoker_evaluation_step", (("split", "val"),)], evaluated["step"])
        self.assertEqual(found["stoker_learning_rate", ()], step["lr"])
        self.assertEqual(found["stoker_memory_bytes", ()], step["memory_bytes"])
        self.assertEqual(found["stoker_step", ()], 300)
        self.assertEqual(found["stoker_last_step", ()], 400)
        self.assertEqual(found["stoker_epoch", ()], 2)
        self.assertEqual(found["stoker_samples_total", ()], 300 * 64)
        self.assertEqual(found["stoker_train_seconds_total", ()], 150)
        self.assertEqual(found["stoker_data_wait_seconds_total", ()], 37.5)
        self.assertEqual(found["stoker_samples_per_second", ()], 128)
        self.assertEqual(found["stoker_data_wait_ratio", ()], 0.25)
        self.assertEqual(found["stoker_faults_total", (("kind", "non_finite"),)], len(events(self.run_folder, "fault")))
        self.assertEqual(found["stoker_findings_total", ()], len(events(self.run_folder, "finding")))
        self.assertEqual(found["stoker_checkpoint_step", (("kind", "last"),)], 300)
        info, = [dict(labels) for name, labels in found if name == "stoker_run_info"]
        self.assertEqual(info, {"title": "a *run* of <nothing>", "folder": str(self.run_folder)})

    def test_shows_figures_of_the_machine(self):
        self.written(10, "prometheus:0")
        found = self.read()
        self.assertEqual(found["stoker_gpu_power_watts", (("gpu", "0"),)], 95.5)
        self.assertEqual(found["stoker_gpu_power_watts", (("gpu", "1"),)], 70)
        self.assertEqual(found["stoker_process_resident_bytes", ()], 2**30)
        self.assertEqual(found["stoker_process_cpu_cores", ()], 0.75)
        self.assertEqual(found["stoker_threads_cpu_cores", (("thread", "loader (1)"),)], 0.25)
        self.assertEqual(found["stoker_threads_cpu_cores", (("thread", "main"),)], 0.5)
        self.assertNotIn(("stoker_machine_stolen_cores", ()), found)  # no longer known

    def test_shows_where_the_time_went(self):
        """The record of the whole session changes nothing."""
        self.written(10, "prometheus:0")
        found = self.read()
        self.assertEqual(found["stoker_phase_seconds_total", (("phase", "forward"),)], 2)
        self.assertEqual(found["stoker_phase_cpu_seconds_total", (("phase", "forward"),)], 1)
        self.assertEqual(found["stoker_phase_device_seconds_total", (("phase", "forward"),)], 0.5)
        self.assertEqual(found["stoker_phase_seconds_total", (("phase", "device wait"),)], 6)
        self.assertNotIn(("stoker_phase_cpu_seconds_total", (("phase", "device wait"),)), found)  # unknown, not 0
        self.assertEqual(found["stoker_mark_seconds_total", (("mark", 'my "stage"'),)], 1)
        self.assertEqual(found["stoker_step_seconds", (("quantile", "0.99"),)], 0.3)
        self.assertEqual(found["stoker_slow_steps_total", (("phase", "fetch"),)], 1)
        self.assertEqual(found["stoker_loader_seconds_total", (("stage", "JPEG decode"),)], 1.5)
        self.assertEqual(found["stoker_loader_threads", ()], 3)

    def test_keeps_nan(self):
        self.written(7, "prometheus:0")
        value = self.read()["stoker_scalar", (("name", "loss"),)]
        self.assertNotEqual(value, value)

    def test_answers_only_questions_for_metrics(self):
        self.written(3, "prometheus:0")
        address = address_of(self.run_folder)
        self.assertEqual(ask(address)[0], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        for url, data, status in ((address + "/x", None, 404), (address[:-7], None, 404), (address, b"x", 501),
                                  (address + "?" + "x" * 20000, None, 400)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                OPENER.open(urllib.request.Request(url, data), timeout=60)
            self.assertIn(refused.exception.code, (status, 413), url[:60])
            refused.exception.close()

    def test_listens_on_loopback_only(self):
        self.written(3, "prometheus:0")
        port = int(address_of(self.run_folder).split(":")[2].split("/")[0])
        sockets = [line.split() for name in ("tcp", "tcp6")
                   for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]]
        listening = [each[1] for each in sockets if each[3] == "0A" and each[1].endswith(f":{port:04X}")]
        self.assertEqual(listening, [f"0100007F:{port:04X}"])

    def test_survives_clients_that_stop(self):
        session = self.written(3, "prometheus:0")
        address = address_of(self.run_folder)
        port = int(address.split(":")[2].split("/")[0])
        silent = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(silent.close)
        silent.sendall(b"GET /metr")
        for _ in range(20):  # asks and does not wait for the answer
            with socket.create_connection(("127.0.0.1", port)) as hasty:
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                hasty.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
        self.assertIn("# EOF", ask(address)[1])
        session.end()

    def test_takes_no_more_than_16_clients(self):
        """The others wait in the kernel's queue: they take no descriptors of the run."""
        session = self.written(3, "prometheus:0")
        address = address_of(self.run_folder)
        port = int(address.split(":")[2].split("/")[0])
        clients = []
        self.addCleanup(lambda: [client.close() for client in clients])
        before = sockets_of(session.process.pid)
        for _ in range(100):
            clients.append(socket.create_connection(("127.0.0.1", port)))
            clients[-1].sendall(b"GET /metr"[:9 * (len(clients) % 2)])  # nothing, or a part
        most = 0
        for _ in range(100):  # the time in which silent clients are cut off, and others take their places
            most = max(most, sockets_of(session.process.pid) - before)
            time.sleep(0.1)
        self.assertEqual(most, 16)
        while clients:
            clients.pop().close()
        self.assertIn("# EOF", ask(address)[1])
        session.end()

    def test_a_taken_port_does_not_end_the_run(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            session = self.written(30, f"prometheus:{other.getsockname()[1]}")
            session.end()
        said = [finding["text"] for finding in events(self.run_folder, "finding")]
        reason, = [text for text in said if "a log failed" in text]
        self.assertIn(f"cannot listen on 127.0.0.1:{other_port(reason)}: Address already in use", reason)
        self.assertEqual(events(self.run_folder, "run_finished")[0]["outcome"], "done")


def other_port(text):
    return re.search(r"127\.0\.0\.1:(\d+)", text)[1]


class Dashboard(unittest.TestCase):
    def test_asks_for_metrics_that_exist(self):
        board = json.loads((HOUSE / "docs" / "grafana" / "stoker.json").read_text(encoding="utf-8"))
        queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 10)
        with tempfile.TemporaryDirectory() as folder:
            session = written_run.WrittenRun(folder, 0, 300, 400, "prometheus:0")
            found = samples_of(ask(address_of(pathlib.Path(folder)))[1])
            session.end()
        labels = {}
        for name, pairs in found:
            labels.setdefault(name, {"job", "instance"}).update(label for label, _ in pairs)
        for query in queries:
            names = re.findall(r"\bstoker_\w+", query)
            self.assertTrue(names, query)
            for name in names:
                self.assertIn(name, labels, query)
            for selector in re.findall(r"\{([^}]*)\}", query):
                for label in re.findall(r"(\w+)\s*[=!]~?", selector):
                    self.assertTrue(any(label in labels[name] for name in names), query)
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))


class Training(unittest.TestCase):
    def test_can_be_watched(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "rows.csv").write_text("a,b\n" + "".join(f"{i % 37},{i % 3}\n" for i in range(300)))
            command = [os.environ["STOKER_BIN"] + "/stoker", "train", "rows.csv", "run=run", "target=b", "epochs=100000",
                       "hidden=8", "precision=fp32", "threads=0", "intra_op=1", "log=prometheus:0", "--quiet"]
            process = subprocess.Popen(command, cwd=root)
            try:
                for _ in range(600):
                    if (root / "runs" / "run" / "metrics.jsonl").exists():
                        break
                    time.sleep(0.1)
                address = address_of(root / "runs" / "run")
                for _ in range(600):
                    found = samples_of(ask(address)[1])
                    if found["stoker_step", ()] > 0:
                        break
                    time.sleep(0.1)
                self.assertIn(("stoker_scalar", (("name", "loss"),)), found)
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=120)
            with self.assertRaises(urllib.error.URLError):
                ask(address)


if __name__ == "__main__":
    unittest.main()
