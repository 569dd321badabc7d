package history

import "context"

// FormOf returns the version of the tables, and the last version that this muster knows.
func FormOf(ctx context.Context, s *Store) (has, known int64, err error) {
	p, err := s.provider()
	if err != nil {
		return 0, 0, err
	}
	return versions(ctx, p)
}
