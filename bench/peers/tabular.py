#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stoker's tabular task against scikit-learn on the same rows: adult (classes) and California housing (a number).

    bench/peers/tabular.py STOKER DATA [--seeds 3]

STOKER: the command line's binary. DATA: a folder with adult-train.csv, adult-test.csv and california_housing.csv. Needs
the packages of requirements.txt (tools/python_packages). Housing's test rows are those that Stoker splits off for a
seed, read from its run folder. Prints one line per seed, then means and the ratios that docs/evidence.md quotes.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

import pandas
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler


def stoker(program, work, name, words):
    begin = time.time()
    run = work / name
    subprocess.run([program, "train", *words, f"run={run}", "--quiet"], check=True, cwd=work, stdout=subprocess.DEVNULL)
    seconds = time.time() - begin
    done = subprocess.run([program, "eval", run, "--split", "test", "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["metrics"], seconds


def split_columns(frame):
    numbers = frame.select_dtypes("number").columns.tolist()
    return numbers, [each for each in frame.columns if each not in numbers]


def boosting(kind, frame, seed):
    numbers, words = split_columns(frame)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    columns = make_column_transformer((encoder, words), ("passthrough", numbers))
    return make_pipeline(columns, kind(random_state=seed, categorical_features=list(range(len(words)))))


def logistic(frame):
    numbers, words = split_columns(frame)
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    return make_pipeline(columns, LogisticRegression(max_iter=2000))


def adult(program, data, work, seeds):
    def read(name):
        frame = pandas.read_csv(data / name, header=None, skipinitialspace=True, na_values="?")
        return frame.drop(columns=14), frame[14].str.strip(".")
    train_x, train_y = read("adult-train.csv")
    test_x, test_y = read("adult-test.csv")
    plain = accuracy_score(test_y, logistic(train_x).fit(train_x, train_y).predict(test_x))
    ours, peers = [], []
    for seed in seeds:
        metrics, seconds = stoker(program, work, f"adult-{seed}",
                                  [data / "adult-train.csv", "target=15", "header=off", f"test={data / 'adult-test.csv'}",
                                   "label_strip=.", f"seed={seed}"])
        ours.append(metrics["accuracy"])
        model = boosting(HistGradientBoostingClassifier, train_x, seed).fit(train_x, train_y)
        peers.append(accuracy_score(test_y, model.predict(test_x)))
        print(f"adult seed {seed}: stoker accuracy {ours[-1]:.4f} auc {metrics['auc']:.4f} in {seconds:.1f} s, "
              f"HistGradientBoosting {peers[-1]:.4f}, logistic regression {plain:.4f}", flush=True)
    print(f"adult: stoker {statistics.mean(ours):.4f}, {100 * (statistics.mean(ours) - plain):+.2f} points to logistic "
          f"regression, {100 * (statistics.mean(ours) - statistics.mean(peers)):+.2f} to HistGradientBoosting")


def housing(program, data, work, seeds):
    file = data / "california_housing.csv"
    frame = pandas.read_csv(file)
    target = "median_house_value"
    ours, peers = [], []
    for seed in seeds:
        metrics, seconds = stoker(program, work, f"housing-{seed}", [file, f"target={target}", f"seed={seed}"])
        ours.append(metrics["rmse"])
        tests = pandas.read_csv(work / f"housing-{seed}/artifacts/split.csv").split == "test"
        train, test = frame[~tests.values], frame[tests.values]
        train_x = train.drop(columns=target)
        model = boosting(HistGradientBoostingRegressor, train_x, seed).fit(train_x, train[target])
        peers.append(root_mean_squared_error(test[target], model.predict(test.drop(columns=target))))
        print(f"housing seed {seed}: stoker rmse {ours[-1]:.0f} r2 {metrics['r2']:.4f} in {seconds:.1f} s, "
              f"HistGradientBoosting {peers[-1]:.0f}", flush=True)
    print(f"housing: stoker {statistics.mean(ours):.0f}, {statistics.mean(ours) / statistics.mean(peers):.3f} times "
          f"HistGradientBoosting's rmse")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stoker", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if "model name" in line), "?")
    print(f"{cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.system()} {platform.release()}; "
          f"scikit-learn {sklearn.__version__}; {subprocess.run([arguments.stoker, '--version'], capture_output=True, text=True, check=True).stdout.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for bench in (adult, housing):
            bench(arguments.stoker.resolve(), arguments.data.resolve(), work, range(1, arguments.seeds + 1))


if __name__ == "__main__":
    main()
