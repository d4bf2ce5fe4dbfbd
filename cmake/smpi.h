/* Included before everything else in a build on SimGrid (preset simgrid), after what SMPI's compiler wrapper includes:
   that replaces exit(x) by a macro, which CLI11's functions of this name do not survive. */
#undef exit
