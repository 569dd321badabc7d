package ansible

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/fleet"
)

// jump is the way to a host as the options of ssh give it.
type jump struct {
	hops []hop
	at   setting
}

// hop is one jump host, [user@]host[:port].
type hop struct {
	user, host string
	port       int // 0: not given
}

// jump records the jump hosts on the way to a host. As in ssh, the first setting
// counts.
func (m *maker) jump(e *fleet.Entry, text string, v setting, bad func(string, ...any)) {
	if _, told := m.jumps[e.Host.Name]; told || strings.EqualFold(text, "none") {
		return
	}
	j := jump{at: v}
	for word := range strings.SplitSeq(text, ",") {
		h, err := parseHop(word)
		if err != nil {
			bad("jump host %s: %v", short(word), err)
			return
		}
		j.hops = append(j.hops, h)
	}
	m.jumps[e.Host.Name] = j
}

func parseHop(text string) (hop, error) {
	h := hop{host: strings.TrimPrefix(text, "ssh://")}
	if i := strings.LastIndexByte(h.host, '@'); i >= 0 {
		h.user, h.host = h.host[:i], h.host[i+1:]
		if err := fleet.CheckField("user", h.user); err != nil {
			return hop{}, fmt.Errorf("user %w", err)
		}
	}
	host, port, found := strings.Cut(h.host, ":")
	if i := strings.LastIndex(h.host, "]"); strings.HasPrefix(h.host, "[") && i > 0 {
		host, port, found = h.host[1:i], strings.TrimPrefix(h.host[i+1:], ":"), i+1 < len(h.host)
	}
	if found {
		if err := fleet.CheckField("port", port); err != nil {
			return hop{}, fmt.Errorf("port %w", err)
		}
		h.port, _ = strconv.Atoi(port) // CheckField has checked it
	}
	h.host = host
	if err := fleet.CheckField("address", h.host); err != nil {
		return hop{}, err
	}
	return h, nil
}

// resolveJumps sets the jump hosts of all hosts. A jump host with the name or address of a
// host in the inventory stands for that host; any other becomes a Hop of the part.
func (r *reader) resolveJumps(list []fleet.Entry) {
	if len(r.jumps) == 0 {
		return
	}
	known := map[string]*fleet.Host{}
	for i := range list {
		if h := &list[i].Host; known[h.Address] == nil {
			known[h.Address] = h
		}
	}
	for i := range list {
		known[list[i].Host.Name] = &list[i].Host
	}
	for i := range list {
		e := &list[i]
		j, told := r.jumps[e.Host.Name]
		if !told {
			continue
		}
		e.JumpLine = j.at.node.Line
		for _, h := range j.hops {
			name := r.hopName(h, known[h.host], e.Host.Key)
			if name == e.Host.Name {
				break // the jump host of all hosts: only those before it apply to itself
			}
			e.Jump = append(e.Jump, name)
		}
	}
}

// hopName returns the name of a jump host. It creates a Hop unless the host itself fits.
func (r *reader) hopName(h hop, as *fleet.Host, key string) string {
	if as != nil && (h.user == "" || h.user == as.User) && (h.port == 0 || h.port == as.Port) {
		return as.Name
	}
	hop := fleet.Hop{Name: strings.ReplaceAll(h.host, ":", "-"), Address: h.host, Port: 22,
		User: "root", Key: key}
	if as != nil {
		hop.Name, hop.Address, hop.Port, hop.User = as.Name, as.Address, as.Port, as.User
	}
	if h.port != 0 {
		hop.Port = h.port
	}
	if h.user != "" {
		hop.User = h.user
	}
	base := hop.Name
	for n := 1; ; n++ {
		if n > 1 || as != nil {
			hop.Name = fmt.Sprintf("%s_%d", base, n)
		}
		i := slices.IndexFunc(r.hops, func(o fleet.Hop) bool { return o.Name == hop.Name })
		if i < 0 {
			r.hops = append(r.hops, hop)
			return hop.Name
		}
		if o := r.hops[i]; o.Address == hop.Address && o.Port == hop.Port && o.User == hop.User &&
			o.Key == hop.Key {
			return hop.Name
		}
	}
}
