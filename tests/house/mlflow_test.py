# SPDX-License-Identifier: Apache-2.0
"""Runs on a real MLflow server, also when it is down, slow or faulty for a while: a gate in front of it that the test
closes. Values are read back through MLflow's own REST interface."""
import http.client
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

from packages import installed
from written_run import WrittenRun

PACKAGES = installed("mlflow-requirements.txt")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
JSON = {"Content-Type": "application/json"}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """A real one, with an empty database."""

    def __init__(self, folder):
        self.port = free_port()
        self.log = open(folder / "server.log", "w+")
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
                   "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
        self.process = subprocess.Popen(command, cwd=folder, stdout=self.log, stderr=self.log, start_new_session=True,
                                        env={**os.environ, "PYTHONPATH": PACKAGES, "MLFLOW_DISABLE_TELEMETRY": "true"})
        while True:
            try:
                self.get("experiments/search?max_results=1")
                return
            except OSError:
                if self.process.poll() is not None:
                    self.log.seek(0)
                    raise RuntimeError(f"mlflow server did not start:\n{self.log.read()}")
                time.sleep(0.2)

    def stop(self):
        os.killpg(self.process.pid, 15)
        self.process.wait()
        self.log.close()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/2.0/mlflow/{path}", data, JSON)
        with OPENER.open(request, timeout=60) as answer:
            return json.loads(answer.read())

    def get(self, path):
        return self.ask(path)

    def runs(self, experiment):
        found = self.get(f"experiments/get-by-name?experiment_name={experiment}")["experiment"]["experiment_id"]
        return self.ask("runs/search", {"experiment_ids": [found], "order_by": ["attributes.start_time"]}).get("runs", [])

    def history(self, run, key):
        """[(step, value)] in order; a step that occurs twice stays twice."""
        path = f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={urllib.parse.quote(key, safe='')}"
        return sorted((each["step"], float(each["value"])) for each in self.get(path).get("metrics", []))


class Gate:
    """Forwards to the server. It can be closed (nobody listens), answer 500, or hold requests back: all, or those with
    values ("... batches")."""

    def __init__(self, server):
        self.server, self.port, self.answer = server, free_port(), None
        self.held = threading.Semaphore(0)   # requests that are held back
        self.release = threading.Event()
        self.listener = None
        self.credentials = set()             # that came with requests; None: there were none

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def open(self, answer="forward"):
        self.answer = answer
        if self.listener:
            return
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = gate.answer
                gate.credentials.add(self.headers.get("Authorization"))
                if answer.endswith(" batches"):
                    answer = answer[:-8] if b'"metrics":[{' in body else "forward"
                if answer == "hold":
                    gate.held.release()
                    gate.release.wait(60)
                status, reply = 500, b"<html>overloaded</html>"
                if answer == "not found":
                    status, reply = 404, b"<html>no such page</html>"
                elif answer == "wants credentials":
                    status, reply = 401, b"<html>who are you?</html>"
                elif answer != "error":
                    connection = http.client.HTTPConnection("127.0.0.1", gate.server.port, timeout=60)
                    connection.request(self.command, self.path, body or None, JSON)
                    forwarded = connection.getresponse()
                    status, reply = forwarded.status, forwarded.read()
                    connection.close()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(reply)))
                    self.end_headers()
                    self.wfile.write(reply)
                except OSError:
                    pass  # the client did not wait

            do_POST = do_GET

        class Listener(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.listener = Listener(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        if self.listener:
            self.listener.shutdown()
            self.listener.server_close()
            self.listener = None


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.experiment = self.id().rsplit(".", 1)[1]
        self.run_folder = pathlib.Path(self.folder.name, self.experiment)
        self.run_folder.mkdir()
        self.gate = Gate(self.server)
        self.addCleanup(self.gate.close)

    def written(self, first, last, total=None, **variables):
        session = WrittenRun(self.run_folder, first, last, total or last, f"mlflow:{self.gate.address}",
                             MLFLOW_EXPERIMENT_NAME=self.experiment, no_proxy="*", **variables)
        self.addCleanup(session.kill)
        return session

    def logged(self, kind):
        lines = (self.run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def said(self, words):
        return [event["text"] for event in self.logged("finding") if words in event["text"]]

    def until_said(self, words):
        for _ in range(600):
            if self.said(words):
                return
            time.sleep(0.1)
        self.fail(f"not said: {words}")

    def run_on_server(self):
        run, = self.server.runs(self.experiment)
        return run

    def check_values(self, run, first_step=1):
        """Every value of metrics.jsonl is there, and none twice."""
        steps = [event for event in self.logged("step") if event["step"] >= first_step]
        for name, key in (("loss", "train/loss"), ("größe, cm", "train/größe_ cm")):
            expected = [(event["step"], float(event["scalars"][name])) for event in steps]
            self.assertEqual(repr(self.server.history(run, key)), repr(expected))  # repr: NaN equals NaN
        self.assertEqual(self.server.history(run, "optimizer/lr"), [(event["step"], event["lr"]) for event in steps])
        evaluated = [(event["step"], event["metrics"]["accuracy"]) for event in self.logged("evaluated")]
        self.assertEqual(self.server.history(run, "val/accuracy"), [each for each in evaluated if each[0] >= first_step])

    def test_has_every_value(self):
        self.gate.open()
        self.written(0, 1200).end()
        run = self.run_on_server()
        self.check_values(run)
        self.assertEqual(self.server.history(run, "val/f1/größe")[0], (100, 0.5))
        self.assertEqual(self.server.history(run, "system/gpu0.power_watts"), [(1200, 95.5)])
        self.assertEqual(self.server.history(run, "speed/samples_per_second")[0], (1, 128))
        self.assertEqual(self.server.history(run, "time/device wait_share"), [(600, 0.75), (1200, 0.75)])
        parameters = {each["key"]: each["value"] for each in run["data"]["params"]}
        self.assertEqual((parameters["lr"], parameters["model"]), ("0.1", "größe"))
        self.assertEqual(parameters["long"], ("long " * 100)[:497] + "...")
        tags = {each["key"]: each["value"] for each in run["data"]["tags"]}
        self.assertEqual(tags["stoker.folder"], str(self.run_folder))
        self.assertIn("the second: one core is busy", tags["stoker.findings"])
        self.assertEqual((run["info"]["run_name"], run["info"]["status"]), (self.experiment, "FINISHED"))
        self.assertGreaterEqual(run["info"]["end_time"], run["info"]["start_time"])
        self.assertEqual(self.said("MLflow"), [])
        self.assertFalse((self.run_folder / "mlflow-pending.jsonl").exists())

    def test_is_down_for_a_while(self):
        session = self.written(0, 300)
        self.until_said("does not take the figures of this run now")
        self.gate.open()
        session.end()
        self.check_values(self.run_on_server())
        said, = self.said("MLflow")
        self.assertIn("Connection refused", said) if "refused" in said else self.assertIn("connect", said)

    def test_answers_500_for_a_while(self):
        self.gate.open("error")
        session = self.written(0, 300)
        self.until_said("it answers 500")
        self.gate.open()
        session.end()
        self.check_values(self.run_on_server())
        self.assertEqual(len(self.said("MLflow")), 1)

    def test_answers_500_to_values_for_a_while(self):
        self.gate.open("error batches")
        session = self.written(0, 300)
        self.until_said("it answers 500")
        self.gate.open()
        session.end()
        self.check_values(self.run_on_server())

    def test_takes_values_too_late(self):
        """They are sent again, since nobody knows that the server has them."""
        self.gate.open("hold batches")
        session = self.written(0, 300, MLFLOW_HTTP_REQUEST_TIMEOUT="1")
        self.assertTrue(self.gate.held.acquire(timeout=60))
        self.until_said("does not take the figures of this run now")
        self.gate.open()
        self.gate.release.set()
        session.end()
        self.check_values(self.run_on_server())

    def test_refuses_values(self):
        """A server that will never take them does not get them again, and the others arrive."""
        self.gate.open("not found batches")
        session = self.written(0, 300)
        self.until_said("refused")
        self.gate.open()
        session.end()
        self.assertIn("it answers 404", self.said("refused")[0])
        self.assertEqual(self.run_on_server()["info"]["status"], "FINISHED")
        self.assertFalse((self.run_folder / "mlflow-pending.jsonl").exists())

    def test_is_slow_for_a_while(self):
        """The run is written while the server still holds the first request back."""
        self.gate.open("hold")
        session = self.written(0, 300, MLFLOW_HTTP_REQUEST_TIMEOUT="1")
        self.assertEqual(len(self.logged("step")), 300)
        self.assertTrue(self.gate.held.acquire(timeout=60))
        self.until_said("does not take the figures of this run now")
        self.gate.open()
        self.gate.release.set()
        session.end()
        for run in self.server.runs(self.experiment):  # what was held back is done, too: MLflow has an empty run more
            if run["info"]["status"] == "FINISHED":
                self.check_values(run)
                break
        else:
            self.fail("no finished run")

    def test_is_down_to_the_end(self):
        self.written(0, 300).end()
        self.assertEqual(self.logged("run_finished")[0]["outcome"], "done")
        pending = self.run_folder / "mlflow-pending.jsonl"
        said, = self.said("did not take the end of this run")
        self.assertIn(f"kept in {pending}; deliver with: stoker resume {self.run_folder}", said)
        keys = [json.loads(line)["key"] for line in pending.read_text(encoding="utf-8").splitlines()]
        self.assertEqual(keys.count("train/loss"), 300)
        self.gate.open()
        self.written(300, 300).end()
        self.check_values(self.run_on_server())
        self.assertFalse(pending.exists())

    def test_goes_on_after_a_kill(self):
        self.gate.open()
        self.written(0, 250, 400).kill()
        self.written(250, 400).end()
        run = self.run_on_server()
        self.check_values(run, 251)
        self.assertEqual(run["info"]["status"], "FINISHED")

    def test_a_run_that_was_deleted_is_made_again(self):
        self.gate.open()
        self.written(0, 100, 200).end()
        self.server.ask("runs/delete", {"run_id": self.run_on_server()["info"]["run_id"]})
        self.written(100, 200).end()
        self.check_values(self.run_on_server(), 101)

    def test_is_something_else(self):
        self.gate.open("not found")
        self.written(0, 50).end()
        self.assertIn("it answers 404", self.said("does not take the figures of this run now")[0])
        self.assertEqual(self.logged("run_finished")[0]["outcome"], "done")
        self.assertTrue((self.run_folder / "mlflow-pending.jsonl").exists())

    def test_credentials_go_to_the_server_of_the_environment(self):
        own = {"MLFLOW_TRACKING_URI": self.gate.address + "/"}
        for variables, header in (({"MLFLOW_TRACKING_TOKEN": "secret"}, "Bearer secret"),
                                  ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "word"}, "Basic bWU6d29yZA==")):
            self.gate.open()
            self.gate.credentials.clear()
            self.written(0, 10, **own, **variables).end()
            self.assertEqual(self.gate.credentials, {header})

    def test_credentials_do_not_go_elsewhere(self):
        """The address may come from a plan that somebody else wrote."""
        elsewhere = ({}, {"MLFLOW_TRACKING_URI": ""}, {"MLFLOW_TRACKING_URI": "http://127.0.0.1"},
                     {"MLFLOW_TRACKING_URI": self.gate.address + "0"}, {"MLFLOW_TRACKING_URI": self.gate.address + "/other"})
        self.gate.open()
        for variables in elsewhere:
            self.written(0, 10, MLFLOW_TRACKING_TOKEN="secret", MLFLOW_TRACKING_USERNAME="me", **variables).end()
        self.assertEqual(self.gate.credentials, {None})
        self.assertEqual(self.said("MLflow"), [])
        self.gate.open("wants credentials")
        self.written(0, 10, MLFLOW_TRACKING_TOKEN="secret").end()
        self.assertIn("it answers 401; credentials are sent only to the server of MLFLOW_TRACKING_URI", self.said("MLflow")[0])
        self.assertEqual(self.gate.credentials, {None})

    def test_a_damaged_name_of_the_run_is_not_used(self):
        self.gate.open()
        for text in ("", "[1]", "5", '{"address": 5}', '{"run_id": "x"}', json.dumps({"address": self.gate.address, "run_id": 5})):
            (self.run_folder / "mlflow.json").write_text(text)
            self.written(0, 10).end()
            known = json.loads((self.run_folder / "mlflow.json").read_text())
            self.assertIn(known["run_id"], [run["info"]["run_id"] for run in self.server.runs(self.experiment)], text)
        self.assertEqual(len(self.server.runs(self.experiment)), 6)
        self.assertEqual([event for event in self.logged("finding") if "failed" in event["text"]], [])

    def test_a_damaged_pending_file_is_named(self):
        self.gate.open()
        (self.run_folder / "mlflow-pending.jsonl").write_text('{"key":"kept","value":"NaN","timestamp":1,"step":2}\n{"key":\n')
        self.written(0, 10).end()
        self.assertIn("1 line of mlflow-pending.jsonl", self.said("MLflow")[0])
        step, value = self.server.history(self.run_on_server(), "kept")[0]
        self.assertTrue(step == 2 and value != value)


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "rows.csv").write_text("a,b\n" + "".join(f"{i % 37},{i % 3}\n" for i in range(300)))

    def stoker(self, *arguments, **variables):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
        return subprocess.run([os.environ["STOKER_BIN"] + "/stoker", *arguments], cwd=self.root, capture_output=True, text=True,
                              env={**environment, "no_proxy": "*", **variables})

    def train(self, log, **variables):
        return self.stoker("train", "rows.csv", "run=./run", "target=b", "steps=20", "hidden=8", "precision=fp32", "threads=0",
                           "intra_op=1", f"log={log}", **variables)

    def test_a_resume_delivers_what_a_finished_run_kept(self):
        server = Server(self.root)
        self.addCleanup(server.stop)
        variables = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{free_port()}/", "MLFLOW_EXPERIMENT_NAME": "tables"}
        done = self.train("mlflow", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("deliver with: stoker resume", done.stdout)
        self.assertEqual(done.stdout.count("does not take the figures of this run now"), 1)  # at the start and at the end
        self.assertNotIn(variables["MLFLOW_TRACKING_URI"], (self.root / "run" / "plan.json").read_text())
        variables["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{server.port}"
        done = self.stoker("resume", "run", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        run, = server.runs("tables")
        lines = (self.root / "run" / "metrics.jsonl").read_text().splitlines()
        steps = [event for event in map(json.loads, lines) if event["event"] == "step"]
        self.assertEqual(len(steps), 20)
        self.assertEqual(server.history(run, "train/loss"), [(event["step"], event["scalars"]["loss"]) for event in steps])
        self.assertFalse((self.root / "run" / "mlflow-pending.jsonl").exists())
        self.assertEqual(run["info"]["status"], "FINISHED")

    def test_needs_an_address_before_it_starts(self):
        for log, variables, words in (("mlflow", {}, "MLFLOW_TRACKING_URI is not set"),
                                      ("mlflow", {"MLFLOW_TRACKING_URI": "file:/tmp/x"}, "must be http://HOST:PORT"),
                                      ("mlflow:http://me:secret@host", {}, "MLFLOW_TRACKING_PASSWORD")):
            done = self.train(log, **variables)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.root / "run").exists())


if __name__ == "__main__":
    unittest.main()
