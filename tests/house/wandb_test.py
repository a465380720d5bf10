# SPDX-License-Identifier: Apache-2.0
"""The offline runs for Weights & Biases, read by the record reader of W&B's own package, and uploaded by its own
command to a server of this test."""
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import written_run
import wandb

wandb._assert_is_internal_process = True  # DataStore asks for it
from wandb.proto import wandb_internal_pb2  # noqa: E402
from wandb.sdk.internal.datastore import DataStore  # noqa: E402


def records(path):
    store, found = DataStore(), []
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        found.append(record)
    store.close()
    assert [record.num for record in found] == list(range(1, len(found) + 1))
    return found


def of_kind(path, kind):
    return [getattr(record, kind) for record in records(path) if record.WhichOneof("record_type") == kind]


def items(message):
    return {item.key: json.loads(item.value_json) for item in message}


def same(one, other):
    return one == other or (one != one and other != other)


class Uploads(http.server.ThreadingHTTPServer):
    """Takes what `wandb sync` sends: as much of W&B's interface as it asks for."""

    def __init__(self):
        self.files, self.ends, self.configs = {}, [], []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                reply = json.dumps(server.take(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_PUT = do_POST

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, path, body):
        if path.endswith("/file_stream"):
            sent = json.loads(body)
            for name, part in sent.get("files", {}).items():
                for number, line in enumerate(part["content"], part["offset"]):
                    self.files.setdefault(name, {})[number] = json.loads(line)
            self.ends += [sent["exitcode"]] if sent.get("complete") else []
        elif path.endswith("/graphql") and b"upsertBucket" in body:
            asked = json.loads(body)["variables"]
            self.configs.append(json.loads(asked.get("config") or "{}"))
            project = {"id": "cA==", "name": asked["project"], "entity": {"id": "ZQ==", "name": "us"}}
            return {"data": {"upsertBucket": {"inserted": True, "bucket": {
                "id": "aWQ=", "name": asked["name"], "displayName": "first", "description": "", "config": "{}", "sweepName": None,
                "project": project, "historyLineCount": 0}}}}
        return {"data": {}}


class Reader(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name, "first")
        self.run_folder.mkdir()

    def written(self, first, last, total, **variables):
        session = written_run.WrittenRun(self.run_folder, first, last, total, "wandb", **variables)
        self.addCleanup(session.kill)
        return session

    def files(self):
        return sorted((self.run_folder / "wandb").glob("offline-run-*/run-*.wandb"))

    def logged(self):
        return [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]

    def rows(self, path):
        """{step: row}; the steps ascend."""
        history = of_kind(path, "history")
        rows = {each.step.num: items(each.item) for each in history}
        self.assertEqual([each.step.num for each in history], sorted(rows))
        self.assertTrue(all(row["_step"] == step for step, row in rows.items()))
        return rows

    def test_reads_every_value(self):
        self.written(0, 300, 300).end()
        file, = self.files()
        rows = self.rows(file)
        self.assertEqual(list(rows), list(range(1, 301)))
        compared = 0
        for event in self.logged():
            if event["event"] == "step":
                row = rows[event["step"]]
                for name, value in event["scalars"].items():
                    self.assertTrue(same(row["train/" + name], float(value)), (event, row))
                    compared += 1
                self.assertEqual((row["optimizer/lr"], row["memory/device_bytes"]), (event["lr"], event["memory_bytes"]))
                self.assertEqual((row["speed/samples_per_second"], row["speed/data_wait_share"]), (128, 0.25))
            if event["event"] == "evaluated":
                for name, value in event["metrics"].items():
                    self.assertEqual(rows[event["step"]][f"{event['split']}/{name}"], value)
                    compared += 1
        self.assertEqual(compared, 300 * 2 + 3 * 2)
        self.assertTrue(rows[7]["train/loss"] != rows[7]["train/loss"])  # NaN
        self.assertEqual((rows[300]["time/forward_share"], rows[300]["time/device wait_share"]), (0.25, 0.75))
        times = [(row["_timestamp"], row["_runtime"]) for row in rows.values()]
        self.assertEqual(times, sorted(times))

    def test_reads_the_run(self):
        self.written(0, 300, 300, WANDB_PROJECT="birds", WANDB_ENTITY="us").end()
        file, = self.files()
        self.assertEqual(records(file)[0].WhichOneof("record_type"), "header")
        run, = of_kind(file, "run")
        self.assertRegex(file.parent.name, rf"^offline-run-\d{{8}}_\d{{6}}-{run.run_id}$")
        self.assertEqual(file.name, f"run-{run.run_id}.wandb")
        self.assertEqual((run.project, run.entity, run.display_name, run.notes), ("birds", "us", "first", "a *run* of <nothing>"))
        config = items(run.config.update)
        self.assertEqual((config["lr"], config["model"], config["time"], config["long"]), (0.1, "größe", "inf", "long " * 20000))
        self.assertEqual((run.starting_step, run.resumed), (0, False))
        self.assertGreater(run.start_time.seconds, 1_700_000_000)
        summary = items(of_kind(file, "summary")[-1].update)
        self.assertEqual((summary["train/loss"], summary["val/accuracy"], summary["optimizer/lr"]), (0.0033333334, 300 / 1024, 0.1))
        machine = of_kind(file, "stats")[-1]
        self.assertEqual(items(machine.item)["gpu0.power_watts"], 95.5)
        time = [event["time"] for event in self.logged() if event["event"] == "monitor"][-1]
        self.assertEqual((machine.timestamp.seconds, machine.timestamp.nanos), (int(time), 500_000_000))
        self.assertEqual(of_kind(file, "exit")[0].exit_code, 0)

    def test_says_how_to_upload(self):
        self.written(0, 100, 100).end()
        said = [event["text"] for event in self.logged() if event["event"] == "finding"]
        command, = [found[1] for text in said if (found := re.search(r"wandb sync (\S+)$", text))]
        self.assertEqual(pathlib.Path(command), self.files()[0].parent)

    def test_is_uploaded_by_their_own_command(self):
        self.written(0, 120, 120).end()
        file, = self.files()
        server = Uploads()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        variables = {"WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": "a" * 40, "NO_PROXY": "*",
                     "no_proxy": "*", "HOME": str(self.run_folder), "WANDB_ERROR_REPORTING": "false", "PYTHONPATH": written_run.PACKAGES}
        done = subprocess.run([sys.executable, "-m", "wandb", "sync", file.parent], cwd=self.run_folder, capture_output=True,
                              text=True, env={**os.environ, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        history = list(server.files["wandb-history.jsonl"].values())
        rows = self.rows(file)
        self.assertEqual(repr([sorted(row.items()) for row in history]), repr([sorted(row.items()) for row in rows.values()]))
        self.assertEqual(server.files["wandb-summary.json"][0]["val/accuracy"], 100 / 1024)
        self.assertEqual(server.configs[0]["lr"]["value"], 0.1)
        self.assertEqual(server.ends, [0])

    def test_reads_a_killed_and_resumed_run_as_one(self):
        self.written(0, 250, 400).kill()
        self.written(120, 400, 400).end()
        first, second = self.files()
        runs = [of_kind(file, "run")[0] for file in (first, second)]
        self.assertEqual(runs[0].run_id, runs[1].run_id)
        self.assertEqual((runs[1].starting_step, runs[1].resumed), (120, True))
        self.assertEqual(list(self.rows(first)), list(range(1, 250)))  # the row of the newest step may still grow
        self.assertEqual(list(self.rows(second)), list(range(121, 401)))
        self.assertEqual(of_kind(first, "exit"), [])
        self.assertLess(first.parent.name, second.parent.name)

    def test_a_folder_that_cannot_be_made_does_not_end_the_run(self):
        (self.run_folder / "wandb").write_text("a file")
        self.written(0, 30, 30).end()
        reason, = [event["text"] for event in self.logged() if "a log failed" in event.get("text", "")]
        self.assertIn("the folder for Weights & Biases cannot be created", reason)
        self.assertEqual(self.logged()[-1]["outcome"], "done")


if __name__ == "__main__":
    unittest.main()
