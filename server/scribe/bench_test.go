package scribe_test

import (
	"path/filepath"
	"testing"

	"muster/history"
	"muster/testkit/sqltest"
)

// BenchmarkWrite measures how long an order waits for its entry; the parallel ones share
// transactions.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  func(testing.TB) history.Config
	}{{"sqlite", sqltest.SQLite}, {"postgres", func(t testing.TB) history.Config { return sqltest.Shared(t).Config(t) }}} {
		d := at(b, c.cfg(b), filepath.Join(b.TempDir(), "audit"))
		write := func(b *testing.B) {
			if _, err := d.Write(b.Context(), order("task.submit"), false); err != nil {
				b.Error(err)
			}
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				write(b)
			}
		})
		b.Run(c.name+"-parallel", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					write(b)
				}
			})
		})
	}
}
