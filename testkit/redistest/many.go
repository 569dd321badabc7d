package redistest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/apart"
	"muster/testkit/porttest"
)

// patience bounds the waiting for servers to agree on something.
const patience = 90 * time.Second

// Sentinels is a server with replicas, watched by three Sentinels.
type Sentinels struct {
	Servers  []*Server // the first one is the master at the start
	Watchers []*Server
}

// sentinelMaster is the name that the Sentinels give the server.
const sentinelMaster = "queue"

// sentinelConf is the configuration of a Sentinel. It holds a server for dead
// after two seconds without an answer.
const sentinelConf = `sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s 2000
sentinel failover-timeout %[1]s 10000
sentinel parallel-syncs %[1]s 1
`

// StartSentinels starts a master with so many replicas, and three Sentinels. More
// arguments are given to the servers; Sentinels speak TLS if these do.
func StartSentinels(t testing.TB, replicas int, args ...string) *Sentinels {
	t.Helper()
	s := &Sentinels{Servers: []*Server{StartServer(t, args...)}}
	host, port, _ := net.SplitHostPort(s.Servers[0].Addr)
	for range replicas {
		s.Servers = append(s.Servers, StartServer(t, append(args, "--replicaof", host+" "+port)...))
	}
	for range 3 {
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf(sentinelConf, sentinelMaster, host, port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		watcher := []string{conf, "--sentinel"}
		for i := 0; i+1 < len(args); i += 2 {
			if strings.HasPrefix(args[i], "--tls-") {
				watcher = append(watcher, args[i], args[i+1])
			}
		}
		s.Watchers = append(s.Watchers, startReady(t, "+monitor master", watcher))
	}
	// A failover needs Sentinels that know each other, and the replicas.
	for _, w := range s.Watchers {
		c := client(w.Addr)
		t.Cleanup(func() { c.Close() })
		Await(t, "the Sentinels know each other", func(ctx context.Context) bool {
			m, err := c.Do(ctx, "SENTINEL", "MASTER", sentinelMaster).StringSlice()
			return err == nil && field(m, "num-slaves") == fmt.Sprint(replicas) &&
				field(m, "num-other-sentinels") == "2"
		})
	}
	for _, r := range s.Servers[1:] {
		AwaitReplica(t, r)
	}
	return s
}

// Steady lets the Sentinels be patient: tests that are not about failovers shall not see one
// because the machine stood still for two seconds.
func (s *Sentinels) Steady(t testing.TB) *Sentinels {
	t.Helper()
	for _, w := range s.Watchers {
		c := client(w.Addr)
		must(t, c.Do(context.Background(), "SENTINEL", "SET", sentinelMaster,
			"down-after-milliseconds", "600000").Err())
		c.Close()
	}
	return s
}

// field returns the value behind a name in a flat list of pairs.
func field(pairs []string, name string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			return pairs[i+1]
		}
	}
	return ""
}

// AwaitReplica waits until a replica has what its master had.
func AwaitReplica(t testing.TB, s *Server) {
	t.Helper()
	c := client(s.Addr)
	defer c.Close()
	Await(t, "the replica follows", func(ctx context.Context) bool {
		role, err := c.Do(ctx, "ROLE").Slice()
		return err == nil && len(role) > 3 && role[0] == "slave" && role[3] == "connected"
	})
}

// Config returns the configuration with which the queue finds the server through the Sentinels.
func (s *Sentinels) Config() queue.Config {
	c := queue.DefaultConfig()
	c.Sentinel.Master = sentinelMaster
	for _, w := range s.Watchers {
		c.Sentinel.Addresses = append(c.Sentinel.Addresses, w.Addr)
	}
	return c
}

// Cluster is a cluster of three nodes that share the slots, each maybe with a
// replica.
type Cluster struct {
	Nodes    []*Server
	Replicas []*Server // of the node at the same place; empty: none
}

// StartCluster starts a cluster of three. A node is dead for the others after two
// seconds without an answer. More arguments are given to the servers.
func StartCluster(t testing.TB, replicas bool, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	count := 3
	if replicas {
		count = 6
	}
	var all []*Server
	var clients []*redis.Client
	for range count {
		_, bus, _ := net.SplitHostPort(porttest.Addr(t))
		s := StartServer(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-replica-validity-factor", "0", "--cluster-port", bus}, args...)...)
		all = append(all, s)
		rdb := client(s.Addr)
		t.Cleanup(func() { rdb.Close() })
		clients = append(clients, rdb)
		host, port, _ := net.SplitHostPort(s.Addr)
		must(t, clients[0].Do(t.Context(), "CLUSTER", "MEET", host, port, bus).Err())
	}
	c.Nodes, c.Replicas = all[:3], all[3:]
	for i, rdb := range clients[:3] {
		must(t, rdb.ClusterAddSlotsRange(t.Context(), i*slots/3, (i+1)*slots/3-1).Err())
	}
	for i := range c.Replicas {
		id := clients[i].Do(t.Context(), "CLUSTER", "MYID").Val()
		Await(t, "the replica knows its node", func(ctx context.Context) bool {
			return clients[3+i].Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil
		})
	}
	for _, rdb := range clients {
		Await(t, "the cluster is up", func(ctx context.Context) bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprint("cluster_known_nodes:", count))
		})
	}
	for _, r := range c.Replicas {
		AwaitReplica(t, r)
	}
	return c
}

// slots is the number of slots of a cluster.
const slots = 16384

// Config returns the configuration with which the queue uses the cluster.
func (c *Cluster) Config() queue.Config {
	cfg := queue.DefaultConfig()
	for _, n := range c.Nodes {
		cfg.Cluster = append(cfg.Cluster, n.Addr)
	}
	return cfg
}

// ZoneOn returns the name of a zone that the node at that place serves at the start.
func (c *Cluster) ZoneOn(t testing.TB, node int) string {
	t.Helper()
	rdb := client(c.Nodes[0].Addr)
	defer rdb.Close()
	for i := range 1000 {
		name := fmt.Sprint("zone", i)
		slot := rdb.ClusterKeySlot(t.Context(), prefix(name)).Val()
		if int(slot) >= node*slots/3 && int(slot) < (node+1)*slots/3 {
			return name
		}
	}
	t.Fatalf("no zone for node %d", node)
	return ""
}

// Apart is a server with one more, which is that of a zone.
type Apart struct {
	Hub, Own *Server
	zone     string
}

// StartApart starts both servers.
func StartApart(t testing.TB, zone string) *Apart {
	t.Helper()
	return &Apart{StartServer(t), StartServer(t), zone}
}

// Config returns the configuration with which the queue uses both.
func (a *Apart) Config() queue.Config {
	cfg := a.Hub.Config()
	cfg.Apart = apart.Zones{a.zone: a.Own.Config().URL}
	return cfg
}

// Await repeats look until it is true.
func Await(t testing.TB, what string, look func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); !look(ctx); {
		select {
		case <-tick:
		case <-ctx.Done():
			t.Fatalf("waited %s: %s", patience, what)
		}
	}
}

// Steady lets the nodes be patient with each other, as Sentinels.Steady does.
func (c *Cluster) Steady(t testing.TB) *Cluster {
	t.Helper()
	for _, n := range c.Nodes {
		rdb := client(n.Addr)
		must(t, rdb.ConfigSet(context.Background(), "cluster-node-timeout", "600000").Err())
		rdb.Close()
	}
	return c
}

// Empty removes all that the servers of a shared Redis hold, for the next test.
func Empty(t testing.TB, servers []*Server) {
	t.Helper()
	for _, s := range servers {
		rdb := client(s.Addr)
		must(t, rdb.FlushAll(context.Background()).Err())
		rdb.Close()
	}
}

// Raw returns a plain client of the server that has a zone, for commands that muster never gives.
// It is closed when the test ends.
func Raw(t testing.TB, cfg queue.Config, zone string) *redis.Client {
	t.Helper()
	c, err := dial(t.Context(), cfg, zone)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(ctx context.Context, cfg queue.Config, zone string) (*redis.Client, error) {
	switch {
	case len(cfg.Cluster) > 0:
		many := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Cluster, Protocol: 2,
			TLSConfig: tlsOf(cfg.Cluster[0])})
		defer many.Close()
		one, err := many.MasterForKey(ctx, prefix(zone))
		if err != nil {
			return nil, err
		}
		return client(one.Options().Addr), nil
	case cfg.Sentinel.Master != "":
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: cfg.Sentinel.Master,
			SentinelAddrs: cfg.Sentinel.Addresses, Protocol: 2,
			TLSConfig: tlsOf(cfg.Sentinel.Addresses[0])}), nil
	}
	o, err := redis.ParseURL(cmp.Or(cfg.Apart[zone], cfg.URL))
	if err != nil {
		return nil, err
	}
	o.Protocol = 2
	return redis.NewClient(o), nil
}

func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, TLSConfig: tlsOf(addr)})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Lasting is a testing.TB for servers that several tests share. End stops them.
type Lasting struct {
	testing.TB
	undo []func()
}

// Helper does nothing.
func (l *Lasting) Helper() {}

// Context never ends.
func (l *Lasting) Context() context.Context { return context.Background() }

// Fatal ends the process: no test can run.
func (l *Lasting) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf ends the process: no test can run.
func (l *Lasting) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Cleanup is called by End.
func (l *Lasting) Cleanup(f func()) { l.undo = append(l.undo, f) }

// TempDir returns a folder that End removes.
func (l *Lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// End undoes everything, the latest first.
func (l *Lasting) End() {
	for i := len(l.undo) - 1; i >= 0; i-- {
		l.undo[i]()
	}
}

// Sever cuts a replica off from its master, for good: what the master writes from
// now on never reaches it, and what it wrote before has. A replica that is only stopped
// would find the rest in the buffers of the kernel.
func Sever(t testing.TB, replica *Server) {
	t.Helper()
	c := client(replica.Addr)
	defer c.Close()
	awaitOffset(t, c)
	// Its master has no password, so it refuses one.
	must(t, c.ConfigSet(t.Context(), "masterauth", "nonsense").Err())
	must(t, c.ClientKillByFilter(t.Context(), "TYPE", "master").Err())
	Await(t, "the replica is cut off", func(ctx context.Context) bool {
		role, err := c.Do(ctx, "ROLE").Slice()
		return err == nil && len(role) > 3 && role[0] == "slave" && role[3] != "connected"
	})
}

// awaitOffset waits until a replica has all that its master had written before.
func awaitOffset(t testing.TB, replica *redis.Client) {
	t.Helper()
	role, err := replica.Do(t.Context(), "ROLE").Slice()
	must(t, err)
	m := client(net.JoinHostPort(fmt.Sprint(role[1]), fmt.Sprint(role[2])))
	defer m.Close()
	master, err := m.Do(t.Context(), "ROLE").Slice()
	must(t, err)
	Await(t, "the replica has what its master has", func(ctx context.Context) bool {
		role, err := replica.Do(ctx, "ROLE").Slice()
		return err == nil && len(role) > 4 && role[0] == "slave" && role[4].(int64) >= master[1].(int64)
	})
}

// AwaitMaster waits until a replica has taken over.
func AwaitMaster(t testing.TB, s *Server) {
	t.Helper()
	c := client(s.Addr)
	defer c.Close()
	Await(t, "the replica takes over", func(ctx context.Context) bool {
		role, err := c.Do(ctx, "ROLE").Slice()
		return err == nil && len(role) > 0 && role[0] == "master"
	})
}
