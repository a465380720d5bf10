# SPDX-License-Identifier: Apache-2.0
"""Our declarations of NVML's structures and functions (src/stoker/device/nvml_abi.h) against NVIDIA's own Python binding: the
binding reads from the stand-in library what tests/support/fake_nvml.cpp wrote with our declarations. Reads STOKER_BUILD."""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
found = subprocess.run([ROOT / "tools/python_packages", ROOT / "tests/nvml-requirements.txt"], capture_output=True, text=True,
                       env={**own_cache.OUTSIDE, "PYTHON": sys.executable})
if found.returncode != 0:
    print(f"SKIPPED: the package of tests/nvml-requirements.txt cannot be installed:\n{found.stderr}")
    sys.exit(77)
sys.path.insert(0, found.stdout.strip())
import pynvml

LIBRARY = pathlib.Path(os.environ["STOKER_BUILD"]) / "tests/fake_nvml/whole/libnvidia-ml.so.1"
if b"__asan_init" in LIBRARY.read_bytes():
    print("SKIPPED: Python cannot load a library that was built with the address sanitizer")
    sys.exit(77)
HEADER = (ROOT / "src/stoker/device/nvml_abi.h").read_text()


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pynvml.nvmlLib = ctypes.CDLL(str(LIBRARY))
        cls.gpu, cls.slice = pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.nvmlDeviceGetHandleByIndex(1)

    def test_figures(self):
        gpu = self.gpu
        self.assertEqual(pynvml.nvmlDeviceGetCount(), 2)
        self.assertEqual(pynvml.nvmlSystemGetDriverVersion(), "580.65.06")
        self.assertEqual(pynvml.nvmlDeviceGetName(gpu), "NVIDIA Fake 80GB")
        self.assertEqual(pynvml.nvmlDeviceGetPciInfo(gpu).busId, "00000000:3B:00.0")
        memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
        self.assertEqual((memory.total, memory.free, memory.used), (80 << 30, 50 << 30, 30 << 30))
        busy = pynvml.nvmlDeviceGetUtilizationRates(gpu)
        self.assertEqual((busy.gpu, busy.memory), (75, 40))
        self.assertEqual(pynvml.nvmlDeviceGetPowerUsage(gpu), 412_500)
        self.assertEqual(pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu), 700_000)
        first = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
        self.assertEqual(pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) - first, 400_000)
        self.assertEqual(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM), 1410)
        self.assertEqual(pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM), 1980)
        self.assertEqual(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_MEM), 2619)
        self.assertEqual(pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU), 64)
        self.assertEqual((pynvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu), pynvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)), (4, 8))
        self.assertEqual((pynvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu), pynvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)), (5, 16))
        self.assertEqual([pynvml.nvmlDeviceGetNvLinkState(gpu, link) for link in range(4)], [1, 1, 1, 0])
        self.assertEqual(pynvml.nvmlDeviceGetMigMode(self.slice), [1, 0])
        with self.assertRaises(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceGetUtilizationRates(self.slice)

    def test_processes(self):
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(self.gpu)
        self.assertEqual(len(processes), 70)
        self.assertEqual((processes[0].pid, processes[0].usedGpuMemory), (4711, 1 << 30))
        self.assertIsNone(processes[1].usedGpuMemory)

    def test_throttle_reasons(self):
        bits = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.gpu)
        self.assertEqual(bits, pynvml.nvmlClocksThrottleReasonSwPowerCap | pynvml.nvmlClocksThrottleReasonGpuIdle)
        names = {"SwPowerCap": "power_cap", "HwSlowdown": "hardware_slowdown", "SyncBoost": "sync_boost", "SwThermalSlowdown": "software_thermal",
                 "HwThermalSlowdown": "hardware_thermal", "HwPowerBrakeSlowdown": "power_brake", "DisplayClockSetting": "display_clock",
                 "BoardLimit": "board_limit", "Reliability": "reliability"}
        for theirs, ours in names.items():
            self.assertIn(f'{{{getattr(pynvml, "nvmlClocksThrottleReason" + theirs):#x}, "{ours}"}}', HEADER)

    def test_performance_counters(self):
        support = pynvml.nvmlGpmQueryDeviceSupport(self.gpu)
        self.assertEqual(support.isSupportedDevice, 1)
        samples = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
        for sample in samples:
            pynvml.nvmlGpmSampleGet(self.gpu, sample)
        wanted = {pynvml.NVML_GPM_METRIC_SM_UTIL: 10, pynvml.NVML_GPM_METRIC_SM_OCCUPANCY: 12.5, pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: 12.5,
                  pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: 55, pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: 12.5}
        asked = pynvml.c_nvmlGpmMetricsGet_t(version=pynvml.NVML_GPM_METRICS_GET_VERSION, numMetrics=len(wanted), sample1=samples[0], sample2=samples[1])
        for i, metric in enumerate(wanted):
            asked.metrics[i].metricId = metric
        pynvml.nvmlGpmMetricsGet(asked)
        self.assertEqual({asked.metrics[i].metricId: asked.metrics[i].value for i in range(len(wanted))}, wanted)
        self.assertEqual({asked.metrics[i].nvmlReturn for i in range(len(wanted))}, {pynvml.NVML_SUCCESS})
        for name, value in {"kGpmSmBusy": "SM_UTIL", "kGpmOccupancy": "SM_OCCUPANCY", "kGpmTensor": "ANY_TENSOR_UTIL", "kGpmDram": "DRAM_BW_UTIL",
                            "kGpmPcieSent": "PCIE_TX_PER_SEC", "kGpmPcieReceived": "PCIE_RX_PER_SEC",
                            "kGpmNvlinkReceived": "NVLINK_TOTAL_RX_PER_SEC", "kGpmNvlinkSent": "NVLINK_TOTAL_TX_PER_SEC"}.items():
            self.assertRegex(HEADER, rf"\b{name} = {getattr(pynvml, 'NVML_GPM_METRIC_' + value)}\b")
        for sample in samples:
            pynvml.nvmlGpmSampleFree(sample)


if __name__ == "__main__":
    unittest.main()
