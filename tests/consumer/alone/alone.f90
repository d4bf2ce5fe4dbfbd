! A program in Fortran alone, without a module of MPI: its refused call shows that it is linked and runs.
program alone
  use haloscope
  implicit none
  type(halo_grid) :: grid
  integer :: status
  character(400) :: text

  call grid%create(0, [8, 8], stat=status, errmsg=text)
  print '(i0, 1x, a)', status, trim(text)
end program
