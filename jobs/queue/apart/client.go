package apart

import (
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// again is the time between two calls to the server of a zone that is away.
const again = time.Second

// A Server has what a connection to one server needs.
type Server struct {
	Addr  string
	DB    int
	Login func(context.Context) (username, password string, err error)
	Dial  func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A House is the servers of a hub and of zones, each by its name.
type House struct {
	Hub     string
	Zones   map[string]string // zone to the name of its server
	Servers map[string]Server
	// Greet is called with every new connection.
	Greet func(ctx context.Context, cn *redis.Conn, server string) error
}

// Client makes the client, with the options that all servers share. It calls each server by its
// name, which is the address of it for this client.
func (h House) Client(o *redis.UniversalOptions) *redis.ClusterClient {
	var client *redis.ClusterClient
	hub := func(ctx context.Context) (*redis.Client, error) {
		return client.MasterForKey(ctx, keys.Hub("zones", ""))
	}
	co := o.Cluster()
	co.Addrs = slices.Sorted(maps.Keys(h.Servers))
	co.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return Slots(h.Hub, h.Zones), nil
	}
	co.NewClient = func(node *redis.Options) *redis.Client {
		name, at := node.Addr, h.Servers[node.Addr]
		node.DB, node.CredentialsProviderContext = at.DB, at.Login
		node.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return at.Dial(ctx, network, at.Addr)
		}
		node.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			err := h.Greet(ctx, cn, name)
			if err != nil && name != h.Hub {
				err = &hooks.AwayError{Server: name, Err: err} // nobody can use it
			}
			return err
		}
		c := redis.NewClient(node)
		if name != h.Hub {
			c.AddHook(hooks.Commands{Of: hub})
			c.AddHook(&hooks.Breaker{Server: name, Again: again})
		}
		return c
	}
	client = redis.NewClusterClient(co)
	return client
}
