"""Davis 2017 measured: its code as `hydro3d`, its model fitted to named timers, conjugate gradients against PETSc."""
