package history

import "context"

// Exec changes the tables behind the back of the store.
func (s *Store) Exec(ctx context.Context, text string) error {
	_, err := s.write.ExecContext(ctx, text)
	return err
}
