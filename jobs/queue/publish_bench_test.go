package queue_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// BenchmarkPublish measures the cost of a version of an inventory of 20,000 hosts: time to publish
// it, and bytes of Redis' memory. docs/OPERATING.md has the figure.
func BenchmarkPublish(b *testing.B) {
	s := redistest.StartServer(b)
	q, err := queuetest.Open(b.Context(), s.Config())
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2})
	defer rdb.Close()
	hosts := make([]fleet.Host, 20_000)
	for i := range hosts {
		hosts[i] = fleet.Host{Name: fmt.Sprintf("fw%05d", i), Zone: zone, Customer: "acme",
			Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Port: 22, User: "root",
			Key: "/etc/muster/id_ed25519", Labels: map[string]string{"role": "fw", "site": "zrh"},
			HostKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE" + fmt.Sprintf("%042d", i)}}
	}
	before := usedMemory(b, rdb)
	n := 0
	for b.Loop() {
		n++
		if err := q.Publish(b.Context(), fmt.Sprint("v", n), hosts, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(usedMemory(b, rdb)-before)/float64(n)/1e6, "MB/version")
}

func usedMemory(b *testing.B, rdb *redis.Client) int {
	b.Helper()
	info, err := rdb.Info(b.Context(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(info)
	if m == nil {
		b.Fatalf("used_memory is not in %q", info)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		b.Fatal(err)
	}
	return n
}
