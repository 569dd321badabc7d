package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"muster/jobs"
)

var agreedTable = table{"agreed", []string{"part", "mark", "fields", "at"},
	replace("part", "mark", "fields", "at")}

// KeepAgreed stores parts of the operators' decisions. Each replaces the earlier form of that
// part.
func (s *Store) KeepAgreed(ctx context.Context, parts []jobs.AgreedPart, now time.Time) error {
	var rows [][]any
	for _, p := range parts {
		fields, err := json.Marshal(p.Fields)
		if err != nil {
			return err
		}
		rows = append(rows, []any{p.Part, p.Mark, string(fields), int64(jobs.MicrosOf(now))})
	}
	return s.tx(ctx, "keep what is agreed", func(tx *sql.Tx) error {
		return s.insert(ctx, tx, agreedTable, rows)
	})
}

// Agreed returns the stored parts.
func (s *Store) Agreed(ctx context.Context) (map[string]jobs.AgreedPart, error) {
	out := map[string]jobs.AgreedPart{}
	err := s.rows(ctx, "what is agreed", "select part, mark, fields, at from agreed", nil,
		func(scan func(...any) error) error {
			var p jobs.AgreedPart
			var fields string
			var at int64
			if err := scan(&p.Part, &p.Mark, &fields, &at); err != nil {
				return err
			}
			p.At = instant(at)
			if err := json.Unmarshal([]byte(fields), &p.Fields); err != nil {
				return fmt.Errorf("agreed %s: %w", p.Part, err)
			}
			out[p.Part] = p
			return nil
		})
	return out, err
}
