package enroll

import (
	"context"
	"slices"
	"strconv"

	"muster/cli/reach"
	"muster/fleet"
	"muster/fleet/remote"
)

// An enroller makes hosts show their keys. If the way to a host leads over jump hosts without a
// trusted key, those show theirs first, the outermost before the hosts behind it. Their keys count
// for this one look: a person compares all of them before any is trusted.
type enroller struct {
	client *remote.Client
	flags  enrollFlags
	cas    []string // files of --ca
	book   *knownFile
}

// all returns the keys that the hosts have shown, and in front of them the unknown jump hosts.
func (e *enroller) all(ctx context.Context, hosts []fleet.Host) []enrolled {
	for i := range hosts {
		hosts[i] = e.flags.Key(hosts[i])
	}
	var list []enrolled
	shown := map[string]enrolled{}
	for depth := 0; ; depth++ {
		hops := e.unknownHops(hosts, depth)
		if len(hops) == 0 && !slices.ContainsFunc(hosts, func(h fleet.Host) bool {
			return len(h.Jump) > depth
		}) {
			break
		}
		for i, one := range e.scanned(ctx, hops) {
			shown[doorOf(hops[i])] = one
			list = append(list, one)
		}
		believe(hosts, depth, shown)
	}
	hosts = slices.DeleteFunc(hosts, func(h fleet.Host) bool {
		_, told := shown[doorOf(h)]
		return told
	})
	return append(list, e.scanned(ctx, hosts)...)
}

// unknownHops returns the jump hosts at a depth of the way without any known key, each once, as
// hosts. It gives them the keys that the file of --write has for them.
func (e *enroller) unknownHops(hosts []fleet.Host, depth int) []fleet.Host {
	var hops []fleet.Host
	seen := map[string]bool{}
	for i := range hosts {
		if len(hosts[i].Jump) <= depth {
			continue
		}
		hop := &hosts[i].Jump[depth]
		h := hostOf(hosts[i].Jump[:depth], *hop)
		if e.book != nil && len(hop.HostKeys) == 0 {
			hop.HostKeys = e.book.keys(h)
		}
		if len(hop.HostKeys)+len(hop.HostCAs) > 0 || seen[doorOf(h)] {
			continue
		}
		seen[doorOf(h)] = true
		hops = append(hops, h)
	}
	return hops
}

// scanned makes hosts show their keys, and judges the keys.
func (e *enroller) scanned(ctx context.Context, hosts []fleet.Host) []enrolled {
	list := make([]enrolled, len(hosts))
	reach.Each(ctx, e.flags.parallel, len(hosts), func(i int) {
		var certified bool
		if list[i], certified = scanCertificate(ctx, e.client, hosts[i], e.cas, e.book); !certified {
			list[i] = scan(ctx, e.client, hosts[i], e.flags.all)
		}
		list[i].judge(hosts[i], e.book)
	})
	return list
}

// believe gives the jump hosts at a depth the keys that they have shown, for the hosts behind them.
// A revoked key is not used.
func believe(hosts []fleet.Host, depth int, shown map[string]enrolled) {
	for i := range hosts {
		if len(hosts[i].Jump) <= depth {
			continue
		}
		hop := &hosts[i].Jump[depth]
		for _, k := range shown[doorOf(hostOf(hosts[i].Jump[:depth], *hop))].Keys {
			switch {
			case k.State == keyRevoked:
			case k.Certifies != nil:
				hop.HostCAs = append(slices.Clone(hop.HostCAs), k.Key)
			default:
				hop.HostKeys = append(slices.Clone(hop.HostKeys), k.Key)
			}
		}
	}
}

// hostOf returns a jump host as a host, with the way to it.
func hostOf(way []fleet.Hop, h fleet.Hop) fleet.Host {
	return fleet.Host{Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, Key: h.Key,
		HostKeys: h.HostKeys, Zone: fleet.DefaultZone, Fence: fleet.FenceAuto,
		Jump:     slices.Clone(way),
		Access:   fleet.Access{Certificate: h.Certificate, Profile: h.Profile},
		HostCert: h.HostCert}
}

// doorOf identifies an sshd: an address behind a jump host is another one than the same address
// here.
func doorOf(h fleet.Host) string {
	door := h.Address + " " + strconv.Itoa(h.Port)
	for _, hop := range h.Jump {
		door += " " + hop.Name
	}
	return door
}
