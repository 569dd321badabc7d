package history

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"

	"muster/api"
	"muster/jobs"
)

// capped returns the beginning and the end of an output, at most so many bytes. A line marks each
// place where bytes were left out, here or before.
func capped(o jobs.Output, most int) []byte {
	var all bytes.Buffer
	at := int64(0)
	for _, p := range o {
		if p.At > at {
			all.WriteString(leftOut(p.At - at))
		}
		all.Write(p.Data)
		at = p.End()
	}
	if all.Len() <= most {
		return all.Bytes()
	}
	text, half := all.Bytes(), most/2
	out := append([]byte{}, text[:half]...)
	out = append(out, leftOut(int64(len(text)-2*half))...)
	return append(out, text[len(text)-half:]...)
}

func leftOut(n int64) string { return fmt.Sprintf("\n[%d bytes left out]\n", n) }

// outputRows compresses the output of jobs; a job without output has no row.
func (s *Store) outputRows(list []api.PastJob, said map[jobs.ID]jobs.Output) ([][]any, error) {
	var out [][]any
	at := map[string]int{}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		output := said[j.ID]
		if len(output) == 0 || s.cfg.OutputMax == 0 {
			continue
		}
		text := capped(output, s.cfg.OutputMax)
		b.Reset()
		w.Reset(&b)
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		put(&out, at, string(j.ID), []any{string(j.ID.Task()), j.ID.Host(), output.End(),
			int64(len(text)), bytes.Clone(b.Bytes())})
	}
	return out, nil
}

// Output returns the stored output of a job; nil if there is none.
func (s *Store) Output(ctx context.Context, id jobs.ID) ([]byte, error) {
	var text []byte
	err := s.rows(ctx, "output", "select kept, data from output where task = $1 and host = $2",
		[]any{string(id.Task()), id.Host()}, func(scan func(...any) error) error {
			var kept int64
			var data []byte
			if err := scan(&kept, &data); err != nil {
				return err
			}
			var err error
			text, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), kept))
			return err
		})
	return text, err
}
