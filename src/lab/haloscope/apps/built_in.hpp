// The apps of this build.
#pragma once

namespace haloscope {

/// Adds the apps that haloscope_add_app() has compiled into this build, once. Call it before other threads use apps.
void add_built_in_apps();

}  // namespace haloscope
