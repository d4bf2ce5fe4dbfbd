#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits auto_device_traits{.name = "auto-device",
                                                .summary =
                                                    "device: tries staged, ipc and, where they are safe, aware and "
                                                    "taskqueue in the first exchanges, then keeps the "
                                                    "fastest, for later programs too; quick, fresh: as of auto, which "
                                                    "stands for it where fields of users are on a device",
                                                .colour = "#3d4852",
                                                .options = {"quick", "fresh"},
                                                .listed = {},
                                                .single_messages = false,
                                                .device = true,
                                                .staged = true,
                                                .signals = true};

}  // namespace haloscope
