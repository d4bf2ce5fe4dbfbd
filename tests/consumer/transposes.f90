! The program of transposes.cpp in Fortran: filters along rows and columns, with redistributions in between.
program transposes
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: steps = 10, cells(2) = [20, 14]
  real(8), allocatable, target :: u(:, :), v(:, :), whole(:, :)
  type(halo_grid) :: rows, columns, one
  type(halo_redistribution) :: forth, back, gather
  character(64) :: strategy = 'auto', split
  integer :: first(2), n(2), m(2), all(2), step, i, j

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  write (split, '(a, i0)') '1x', rank_count()
  call rows%create(world(), cells, process_grid=trim(split))
  write (split, '(i0, a)') rank_count(), 'x1'
  call columns%create(world(), cells, process_grid=trim(split))
  call one%create(world(), cells, active_ranks=1)
  first = rows%first() - 1
  n = rows%shape()
  m = columns%shape()
  all = one%shape()
  allocate (u(0:n(1) + 1, 0:n(2) + 1), v(m(1), m(2)), whole(all(1), all(2)))
  do j = 1, n(2)
    do i = 1, n(1)
      u(i, j) = real(modulo((first(1) + i - 1)*7919_8 + (first(2) + j - 1)*104729_8, 1000003_8), 8)/1000003
    end do
  end do
  call forth%add(u, v, halo=1, target_halo=0)
  call forth%open(rows, columns, strategy=trim(strategy))
  call back%add(v, u, halo=0, target_halo=1)
  call back%open(columns, rows, strategy=trim(strategy))
  do step = 1, steps
    do i = 2, n(1)
      u(i, 1:n(2)) = 0.25d0*u(i, 1:n(2)) + 0.5d0*u(i - 1, 1:n(2))
    end do
    call forth%run()
    do j = 2, m(2)
      v(:, j) = 0.25d0*v(:, j) + 0.5d0*v(:, j - 1)
    end do
    call back%start()
    do while (.not. back%progress())
    end do
    call back%finish()
  end do
  call gather%add(u, whole, halo=1, target_halo=0)
  call gather%open(rows, one, strategy='direct/p2p')
  call gather%run()
  if (index(gather%report(), 'direct/p2p: rank ') /= 1) error stop 'report'
  call print_checksum()
  call gather%free()
  call back%free()
  call forth%free()
  call one%free()
  call columns%free()
  call rows%free()
  call end_mpi()

contains

  subroutine print_checksum()
    integer(8) :: mine
    integer :: i, j
    mine = 0
    do j = 1, all(2)
      do i = 1, all(1)
        mine = mine + transfer(whole(i, j), mine)*(2_8*((j - 1)*cells(1) + i - 1) + 1)
      end do
    end do
    call print_sum(mine)
  end subroutine
end program transposes
