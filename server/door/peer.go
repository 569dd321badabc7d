package door

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"muster/fleet"
	"muster/internal/socket"
	"muster/server/sessions"
	"muster/server/web"
)

// peerKey is the key of the user who calls over a unix socket, in the context of a request.
type peerKey struct{}

// peerUser gives that user, or why nobody knows who it is.
type peerUser func() (peer, error)

// peer is a user of this machine.
type peer struct {
	name   string   // os:NAME
	groups []string // os-group:NAME
}

// WithPeer keeps who has connected, which the kernel says.
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*net.UnixConn); !ok {
		return sessions.WithConn(ctx, c)
	}
	p, err := socket.PeerOf(c)
	// The list of users is read when it is needed, and once for each connection.
	return context.WithValue(ctx, peerKey{}, peerUser(sync.OnceValues(func() (peer, error) {
		if err != nil {
			return peer{}, forbidden("unknown_user", "%s: a token is needed", err)
		}
		if !p.Known() {
			return peer{}, forbidden("unknown_user", "the kernel cannot say which user you are "+
				"(uid %d): you, or the server, are in a user namespace; use a token", p.UID)
		}
		if err := mayUse(p, c.LocalAddr().String()); err != nil {
			return peer{}, err
		}
		return newPeer(p), nil
	})))
}

func newPeer(p socket.Peer) peer {
	return peer{web.OSPrefix + p.User(PlainName), asGroups(p.Groups(PlainName))}
}

// asGroups returns groups of the machine as policies name them.
func asGroups(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "os-group:"+name)
	}
	return out
}

// groupsOf returns the groups of a token's owner: those of the machine, if it is a user of it.
func groupsOf(owner string) []string {
	name, is := strings.CutPrefix(owner, web.OSPrefix)
	if !is {
		return nil
	}
	return asGroups(socket.GroupsOf(name, PlainName))
}

// PlainName reports whether a name of the machine can be one of muster's.
func PlainName(s string) bool { return fleet.CheckName(s) == nil }

// ownUser reports whether a user is root or the user of this server.
func ownUser(p socket.Peer) bool { return p.UID == 0 || p.UID == os.Geteuid() }

// mayUse keeps those out who reach the socket only because it has the group of root, which a
// server has that root started: that nobody named a group lets nobody in.
func mayUse(p socket.Peer, path string) error {
	if ownUser(p) {
		return nil
	}
	group, err := socket.Group(path)
	if err != nil {
		return forbidden("unknown_user", "the group of this socket is not known: %s", err)
	}
	if group == 0 {
		return forbidden("no_group", "this socket is for root only: server.socket_group "+
			"(--socket-group) says which group may use it; or use a token")
	}
	return nil
}

// localCaller returns the user who calls over a unix socket without a token. It refuses a proxy
// that listens for others: the server would take all of them for its user.
func localCaller(r *http.Request, user peerUser, claims bool) (web.Caller, error) {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip",
		"Via"} {
		if r.Header.Get(name) != "" {
			return web.Caller{}, unauthorized("proxy", "this came through a proxy (it has a header "+name+
				"): a token is needed")
		}
	}
	p, err := user()
	if err != nil {
		return web.Caller{}, err
	}
	return web.Caller{Name: p.name, Groups: p.groups, Local: true, Claims: claims}, nil
}
