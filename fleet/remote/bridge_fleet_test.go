package remote

import (
	"flag"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/internal/fakefleet"
)

var behindOne = flag.Int("behind", 500, "hosts in TestThousandsBehindOneJumpHost")

// TestThousandsBehindOneJumpHost visits many hosts over one connection, 256 at once, and
// keeps them all open to the end. With -behind=5000 it takes a minute.
func TestThousandsBehindOneJumpHost(t *testing.T) {
	hosts := *behindOne
	if testing.Short() {
		hosts = 200
	}
	f, err := fakefleet.Start(fakefleet.Config{Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	jump := newForwarder()
	var dialling, most atomic.Int32
	jump.dial = func(address string) (net.Conn, error) {
		n := dialling.Add(1)
		defer dialling.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return net.Dial("tcp", address)
	}
	over := jump.listen(t)
	config := Default()
	config.Handshake, config.Auth, config.TCP = time.Minute, time.Minute, time.Minute // two cores
	client := mustClient(t, config)
	before := memory()
	conns := make([]*Conn, hosts)
	eachHost(f.Hosts(), func(i int, h fleet.Host) {
		conn, err := client.Connect(t.Context(), behindOf(h, over))
		if err != nil {
			t.Error(err)
			return
		}
		conns[i] = conn
		if _, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute}); err != nil {
			t.Error(err)
		}
	})
	after := memory()
	eachHost(f.Hosts(), func(i int, _ fleet.Host) {
		if conns[i] != nil {
			conns[i].Close()
		}
	})
	if n := jump.connections.Load(); n != 1 {
		t.Errorf("%d connections to the jump host, want 1", n)
	}
	if n := most.Load(); n > waysMost {
		t.Errorf("the jump host dialled %d hosts at once, at most %d were allowed", n, waysMost)
	}
	// All three sides live in this process, and a connection behind a jump host is two
	// to each of them.
	each := (after - before) / uint64(hosts)
	t.Logf("%d hosts, at most %d dials at once, %d KiB each for all three sides", hosts, most.Load(),
		each>>10)
	if each > 512<<10 {
		t.Errorf("each host takes %d KiB", each>>10)
	}
}

// eachHost visits all hosts, 256 at a time.
func eachHost(hosts []fleet.Host, visit func(i int, h fleet.Host)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 256 {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(hosts)); i = next.Add(1) - 1 {
				visit(int(i), hosts[i])
			}
		})
	}
	workers.Wait()
}

// memory returns the memory that the process uses: heap and stacks.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestSilentHostsBehindAJumpHostAreBounded: what a jump host has not answered stays with
// it, for minutes, and each takes it a file.
func TestSilentHostsBehindAJumpHostAreBounded(t *testing.T) {
	t.Parallel()
	jump, target := newForwarder(), peer{}
	var asked atomic.Int32
	jump.channel = func(ssh.NewChannel) bool {
		asked.Add(1)
		return false
	}
	h := behindOf(target.listen(t), jump.listen(t))
	client := mustClient(t, Default())
	client.pause = hasty(t).pause
	bridge, err := client.bridges.cross(t.Context(), h.Jump)
	if err != nil {
		t.Fatal(err)
	}
	defer client.bridges.giveBack(bridge)
	client.cfg.TCP = 50 * time.Millisecond
	for range askedMax {
		bridge.conn.asked <- struct{}{} // as if so many were there
	}
	_, err = client.Connect(t.Context(), h)
	wantKind(t, err, KindThrottled, false, "jump host jump1", "too many hosts behind it are silent")
	if n := asked.Load(); n != 0 {
		t.Errorf("it was asked %d times more", n)
	}
	<-bridge.conn.asked
	_, err = client.Connect(t.Context(), h)
	wantKind(t, err, KindUnreachable, false, "no answer to TCP from behind jump host")
}
