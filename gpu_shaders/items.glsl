/* Which of the drawn items a place in the drawing order belongs to. */

int item_of(int drawn)
{
  int i = camera.counts.x - 1;
  while (i > 0 && drawn < items[i].rows.x) {
    i--;
  }
  return i;
}
