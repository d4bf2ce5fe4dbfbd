// The program that runs and measures Gray-Scott.
//   haloscope run --program ./gray-scott gray-scott --cells 512 --strategy 'ordered/*' --schedule bulk,split
#include <haloscope/extend/main.hpp>

namespace haloscope {
const App& gray_scott_app();
}

int main(int argc, char** argv) { return haloscope::rank_main(argc, argv, {haloscope::gray_scott_app()}); }
