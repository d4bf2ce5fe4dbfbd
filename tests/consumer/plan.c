/* The same plan through the C interface. */
#include <haloscope/haloscope.h>
#include <stdio.h>

static int fail(hs_status status) {
  fprintf(stderr, "%s\n", hs_last_error());
  return status;
}

int main(void) {
  const int64_t cells[3] = {64, 64, 64};
  const int32_t periodic[3] = {1, 1, 1};
  int32_t grid[3];
  hs_layout* layout = NULL;
  hs_plan* plan = NULL;
  hs_plan_data data;
  hs_spec spec;
  hs_status status;

  hs_spec_init(&spec);
  if ((status = hs_process_grid("cubic", 8, 3, cells, grid))) return fail(status);
  if ((status = hs_layout_create(3, cells, periodic, grid, &layout))) return fail(status);
  if ((status = hs_plan_create(layout, 0, &spec, &plan))) return fail(status);
  if ((status = hs_plan_get(plan, &data))) return fail(status);
  printf("%d messages, %lld bytes\n", (int)data.messages_out, (long long)data.bytes_out);
  hs_plan_free(plan);
  hs_layout_free(layout);

  if (hs_plan_create(NULL, 0, &spec, &plan) != HS_USAGE) return 1; /* errors come back as a status and a text */
  printf("%s\n", hs_last_error());
  return 0;
}
