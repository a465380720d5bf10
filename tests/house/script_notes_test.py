# SPDX-License-Identifier: Apache-2.0
"""What `stoker doctor -- python ...` notes of a script's layers, evaluations, ranks and workers, beside its time."""
import json
import pathlib
import unittest

from script_doctor_test import Watched


_HUGE = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGES = _HUGE.exists() and "[always]" in _HUGE.read_text()


class Notes(Watched):
    def figures(self, text, *arguments):
        script = self.write(text)
        watched, found = self.watch("python3", script, *arguments)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertEqual(found["damage"], [])
        return {name: each["value"] for name, each in found["figures"].items()}, watched


LAYERS = """
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 3), nn.ReLU(), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(2))
    net(torch.zeros(2, 3, 12, 12))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    called = torch.compile(net, backend="eager") if sys.argv[1:] else net
    for step in range(30):
        optimizer.zero_grad()
        called(torch.randn(2, 3, 12, 12)).sum().backward()
        optimizer.step()
    print(len(torch.nn.modules.module._global_forward_hooks))
"""


class Layers(Notes):
    def test_a_bias_before_a_norm_is_one(self):
        figures, watched = self.figures(LAYERS)
        self.assertEqual((figures["layers.convolutions"], figures["layers.biased_before_norm"]), (3, 1))
        self.assertEqual(watched.stdout, "0\n")

    def test_a_compiled_network_is_left_alone(self):
        figures, watched = self.figures(LAYERS, "compile")
        self.assertNotIn("layers.convolutions", figures)


FREED = """
    import resource, time
    torch.set_num_threads(1)  # else other threads have some of the faults
    own = lambda: resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    kept, faults = [], []
    for step in range(120):
        before = own()
        tensor = torch.ones(10_000_000)  # 38 MiB: more than glibc ever keeps by itself
        if sys.argv[1:]:
            kept.append(torch.ones(1_000_000))
        del tensor
        faults.append(own() - before)
        time.sleep(0.02)
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
    print(sorted(faults)[len(faults) // 2])
"""


@unittest.skipIf(HUGE_PAGES, "the kernel gives huge pages to all")
class PageFaults(Notes):
    def test_are_those_of_the_training(self):
        figures, watched = self.figures(FREED)
        self.assertAlmostEqual(figures["process.page_faults_per_step"] / int(watched.stdout), 1, delta=0.1)
        self.assertGreater(figures["process.page_fault_share"], 0)

    def test_without_the_pages_by_which_the_process_grows(self):
        figures, watched = self.figures(FREED, "grow")
        grown = 4_000_000 / figures["page_fault.bytes"]
        self.assertLess(figures["process.page_faults_per_step"], int(watched.stdout) - 0.4 * grown)


EVALUATION = """
    train(40)
    kept = []
    class Sizes(torch.utils.data.Dataset):
        stored = {}
        def __len__(self):
            return 50
        def __getitem__(self, index):
            return self.stored.setdefault(index, torch.zeros(1000)) if sys.argv[1] == "dataset" else torch.zeros(1000)
    model = nn.Linear(1000, 500)
    with torch.no_grad():
        model.eval()
        for batch in torch.utils.data.DataLoader(Sizes()):
            outputs = model(batch)
            if sys.argv[1] == "list":
                kept.append({"outputs": outputs, "mean": outputs.mean().item()})
    model.train()
    train(4)
"""


class Evaluations(Notes):
    def test_outputs_in_a_list_are_counted(self):
        figures, _ = self.figures(EVALUATION, "list")
        self.assertEqual(figures["kept_outputs.tensors_per_batch"], 1)
        self.assertEqual(figures["kept_outputs.host_bytes_per_batch"], 2000)
        self.assertEqual(figures["kept_outputs.batches"], 50)

    def test_outputs_that_go_are_not(self):
        figures, _ = self.figures(EVALUATION, "none")
        self.assertNotIn("kept_outputs.batches", figures)

    def names(self, what):
        kept = self.folder / what
        self.watch("python3", self.write(EVALUATION), what, flags=("--keep", kept))
        lines = [json.loads(line) for path in kept.glob("*.jsonl") for line in path.read_text().splitlines()]
        return {each["name"] for each in lines if each.get("kind") == "kept_outputs"}

    def test_what_a_data_set_stores_has_no_name(self):
        self.assertEqual(self.names("dataset"), {""})
        self.assertEqual(self.names("list"), {"kept"})


class History(Notes):
    def test_a_list_of_losses_is_named(self):
        script = self.write("""
            net = nn.Linear(4, 4)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            losses = []
            for step in range(50):
                optimizer.zero_grad()
                loss = net(torch.randn(2, 4)).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss)
        """)
        _, found = self.watch("python3", script)
        claims = [each["claim"] for each in found["findings"] if each["rule"] == "kept_history"]
        self.assertEqual(len(claims), 1)
        line = next(number for number, text in enumerate((self.folder / script).read_text().splitlines(), 1) if "append" in text)
        self.assertIn(f"`losses` holds it at train.py:{line}", claims[0])
        cure = next(each["cure"] for each in found["findings"] if each["rule"] == "kept_history")
        self.assertIn("losses.append(loss.detach())", cure)


RANK = """
    from torch.nn.parallel import DistributedDataParallel
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=0, world_size=1)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)
        def forward(self, inputs):
            return self.used(inputs) if sys.argv[1] == "unused" else self.unused(self.used(inputs))
    net = DistributedDataParallel(Net(), find_unused_parameters=sys.argv[1] != "off")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    @torch.compile(backend="eager", fullgraph=True)
    def mean(tensor):
        torch.distributed.all_reduce(tensor)
        return tensor / 2
    for step in range(50):
        optimizer.zero_grad()
        net(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    if sys.argv[1] == "off":
        print(mean(torch.full((2,), 4.0)).tolist())
    torch.distributed.destroy_process_group()
"""


class Ranks(Notes):
    def test_unused_parameters_are_counted_where_they_are_searched_for(self):
        for found, wanted in (("all", 0), ("unused", 80)):
            figures, _ = self.figures(RANK, found)
            self.assertEqual(figures["ranks.unused_bytes"], wanted)
            self.assertGreater(figures["ranks.searching"], 0)
            (self.folder / "store").unlink()

    def test_a_compiled_function_may_add_up(self):
        figures, watched = self.figures(RANK, "off")
        self.assertNotIn("ranks.unused_bytes", figures)
        self.assertEqual(watched.stdout, "[2.0, 2.0]\n")


class Workers(Notes):
    def test_cores_of_workers_are_counted_once(self):
        figures, _ = self.figures("""
            def bind(worker):
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            if __name__ == "__main__":
                cores = len(os.sched_getaffinity(0))
                train(40, 2, worker_init_fn=bind)
                print(cores)
        """)
        self.assertEqual(figures["loader.cores"], 1)
        self.assertGreaterEqual(figures["process.start_cores"], 1)
        self.assertGreater(figures["machine.memory_bytes"], 1e8)


class Loaders(Notes):
    def test_a_loader_with_its_own_way_to_begin_is_seen(self):
        figures, _ = self.figures("""
            class Endless(torch.utils.data.DataLoader):  # as some frameworks have it: workers live as long as the loader
                iterator = None
                def __iter__(self):
                    self.iterator = self.iterator or self._get_iterator()
                    for _ in range(len(self)):
                        yield next(self.iterator)
            if __name__ == "__main__":
                data = torch.utils.data.TensorDataset(torch.randn(400, 8))
                loader = Endless(data, batch_size=10, num_workers=2)
                net = nn.Linear(8, 1)
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                for batch, in loader:
                    optimizer.zero_grad()
                    net(batch).sum().backward()
                    optimizer.step()
        """)
        self.assertEqual((figures["loader.workers"], figures["loader.batch"]), (2, 10))

    def test_workers_that_persist_start_once(self):
        script = self.write("""
            if __name__ == "__main__":
                data = torch.utils.data.TensorDataset(torch.randn(200, 8))
                loader = torch.utils.data.DataLoader(data, batch_size=10, num_workers=2, persistent_workers=sys.argv[1] == "on")
                net = nn.Linear(8, 1)
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                for epoch in range(2):
                    for batch, in loader:
                        optimizer.zero_grad()
                        net(batch).sum().backward()
                        optimizer.step()
        """)
        for persistent, starts in (("on", 1), ("off", 2)):
            kept = self.folder / persistent
            self.watch("python3", script, persistent, flags=("--keep", kept))
            lines = [json.loads(line) for path in kept.glob("*.jsonl") for line in path.read_text().splitlines()]
            self.assertEqual(sum(each.get("kind") == "loader_start" for each in lines), starts)


class Results(Notes):
    def test_a_dropped_result_is_found_where_the_step_comes_by(self):
        (self.folder / "helper.py").write_text("""
def move(things, device):
    things["net"].to(device)
    return things
def never(tensor):
    tensor.cpu()
""")
        script = self.write("""
            import helper
            net = nn.Linear(4, 4)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for step in range(30):
                optimizer.zero_grad()
                net(torch.randn(2, 4)).sum().backward()
                optimizer.step()
                if sys.argv[1] == "tensor":
                    batch = torch.randn(2)
                    batch.half()
                if sys.argv[1] == "module":
                    helper.move({"net": net}, "cpu")
            print(sys.gettrace())
        """)
        for what, wanted in (("tensor", ["batch.half() (script)"]), ("module", []), ("neither", [])):
            watched, found = self.watch("python3", script, what)
            self.assertEqual([line for each in found["findings"] if each["rule"] == "unread_result" for line in each["evidence"]], wanted)
            self.assertEqual(watched.stdout, "None\n")  # the trace has ended, also where no such function runs

    def test_the_trace_ends_where_no_such_function_runs(self):
        (self.folder / "helper.py").write_text("def build(net):\n    net.to('cpu')\n    return net\n")
        watched, found = self.watch("python3", self.write("""
            import helper
            net = helper.build(nn.Linear(4, 4))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for step in range(30):
                optimizer.zero_grad()
                net(torch.randn(2, 4)).sum().backward()
                optimizer.step()
            print(sys.gettrace())
        """))
        self.assertEqual(watched.stdout, "None\n")
        self.assertEqual(found["damage"], [])

    def test_a_dropped_result_in_another_file_is_found(self):
        (self.folder / "helper.py").write_text("def move(tensor, device):\n    tensor.to(device)\n    return tensor\n")
        script = self.write("""
            import helper
            net = nn.Linear(4, 4)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            def main():
                for step in range(30):
                    batch = helper.move(torch.randn(2, 4), "cpu")
                    optimizer.zero_grad()
                    net(batch).sum().backward()
                    optimizer.step()
            main()
            print(sys.gettrace())
        """)
        watched, found = self.watch("python3", script)
        claims = [each["claim"] for each in found["findings"] if each["rule"] == "unread_result"]
        self.assertEqual(len(claims), 1, found["verdict"])
        self.assertIn("helper.py:2", claims[0])
        self.assertEqual(watched.stdout, "None\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
