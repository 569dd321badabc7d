package remote_test

import (
	"fmt"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// BenchmarkRecord measures the cost of a record for a step on a real sshd, over an open
// connection. On a slow disk the two syncs are most of it.
func BenchmarkRecord(b *testing.B) {
	h := newRecordingHost(b, sshtest.Options{})
	for _, fence := range []fleet.Fence{fleet.FenceNone, fleet.FenceRequired} {
		h.host.Fence = fence
		for _, shell := range []string{"true", "echo hello"} {
			conn := h.connect()
			b.Run(fmt.Sprintf("%s/%s", fence, shell), func(b *testing.B) {
				fastest := time.Hour // what a busy machine adds is not in it
				for b.Loop() {
					r := step(fmt.Sprint(fence, time.Now().UnixNano()), 1)
					result, err := conn.Run(b.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &r})
					if err != nil || result.ExitCode != 0 {
						b.Fatalf("%+v, %v", result, err)
					}
					fastest = min(fastest, result.Took)
				}
				b.ReportMetric(float64(fastest.Microseconds())/1000, "fastest-ms")
			})
		}
	}
}
