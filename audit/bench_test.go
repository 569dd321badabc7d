package audit

import "testing"

// BenchmarkExamine measures the examination of one entry, with its signature.
func BenchmarkExamine(b *testing.B) {
	log := filled(b, 1000)
	keys := keysOf(b, log.signer)
	h := log.header(b)
	for b.Loop() {
		if r := log.examine(keys, h, log.points...); !r.Whole() {
			b.Fatal(r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/entry")
}
