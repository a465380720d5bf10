// SPDX-License-Identifier: Apache-2.0
// The command line's door: loads CUDA if there is one, hands over to a subcommand, turns errors into exit codes.
#include <cstdio>
#include <new>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/job/process.h"

namespace stoker::app {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Stoker trains networks: it keeps the GPU fed, fits its memory, and explains every idle millisecond.");
  app.name("stoker");
  app.require_subcommand(1);
  app.set_version_flag("--version", job::version_text());
  app.footer("Begin with `stoker train DIR`, where DIR has a folder of pictures for each class.\n"
             "Exit codes: 0 done, 2 usage, 65 data, 71 device, 74 I/O, 75 stopped (stoker resume goes on).");
  int exit_code = kDone;
  add_train(app, exit_code);
  add_plan(app, exit_code);
  add_resume(app, exit_code);
  add_eval(app, exit_code);
  add_predict(app, exit_code);
  add_export(app, exit_code);
  add_info(app, exit_code);
  add_complete(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  return exit_code;
}

int fail_with(int code, const char* text) {
  std::fflush(stdout);
  std::fprintf(stderr, "stoker: %s\n", text);
  return code;
}

}  // namespace
}  // namespace stoker::app

int main(int argc, char** argv) {
  using namespace stoker;
  using namespace stoker::app;
  job::start_process();
  try {
    return run(argc, argv);
  } catch (const ConfigError& error) {
    return fail_with(kUsage, error.what());
  } catch (const DataError& error) {
    return fail_with(kDataError, error.what());
  } catch (const CheckpointError& error) {
    return fail_with(kDataError, error.what());
  } catch (const DeviceError& error) {
    return fail_with(kDeviceError, error.what());
  } catch (const OutOfMemory& error) {
    return fail_with(kDeviceError, error.what());
  } catch (const IoError& error) {
    return fail_with(kIoError, error.what());
  } catch (const std::bad_alloc&) {
    return fail_with(kDeviceError, "out of memory; set microbatch= or image_size= lower");
  } catch (const std::exception& error) {
    return fail_with(kFailed, error.what());
  }
}
