// The interface for users: five nouns (Grid, Field, Exchange, Redistribution, Stepper), five verbs (start, progress,
// finish, exchange, run).
#pragma once

#include "haloscope/best.hpp"
#include "haloscope/doctor.hpp"
#include "haloscope/error.hpp"
#include "haloscope/exchange.hpp"
#include "haloscope/field.hpp"
#include "haloscope/grid.hpp"
#include "haloscope/redistribution.hpp"
#include "haloscope/stepper.hpp"
#include "haloscope/sweep.hpp"
