package history

import (
	"context"

	"muster/jobs"
)

// Exec changes the tables behind the back of the store.
func (s *Store) Exec(ctx context.Context, text string) error {
	_, err := s.write.ExecContext(ctx, text)
	return err
}

// Cursor reads the cursor of a page, and writes it again.
func Cursor(text string) (string, error) {
	w, err := Filter{}.where(text)
	if err != nil || text == "" {
		return "", err
	}
	id := jobs.NewID(jobs.TaskID(w.args[2].(string)), w.args[3].(string))
	return cursorOf(Job{JobInfo: jobs.JobInfo{ID: id, Finished: instant(w.args[0].(int64))}}), nil
}
