package sources

import (
	"errors"
	"fmt"
	"io/fs"

	"muster/fleet"
	"muster/fleet/remote"
)

// resolveKeys looks up the host keys that the inventory does not have itself. A
// host of which none is found stays without: its jobs fail and say why, and the
// others do not wait for it. A file that the inventory names must be there.
func (g *gatherer) resolveKeys(inv *fleet.Inventory) error {
	known := map[string]*remote.KnownHosts{}
	var errs []error
	open := func(path string, must bool) *remote.KnownHosts {
		k, read := known[path]
		if !read {
			g.stamps[path] = stampOf(path)
			var err error
			if k, err = remote.ReadKnownHosts(path); err != nil {
				if must || !g.cfg.Away && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
				k = nil
			}
			known[path] = k
		}
		return k
	}
	all := inv.Hosts()
	for _, h := range inv.Strangers() {
		all = append(all, fleet.Host{Name: h.Name, Address: h.Address, Port: h.Port,
			HostKeys: h.HostKeys, HostCert: h.HostCert})
	}
	for _, h := range all {
		files, must := g.cfg.KnownHosts, false
		if path := inv.KnownHosts(h.Name); path != "" {
			files, must = []string{path}, !g.cfg.Away
		} else if len(h.HostKeys)+len(h.HostCAs) > 0 {
			continue
		}
		for _, path := range files {
			k := open(path, must)
			if k == nil {
				continue
			}
			trust := k.Trust(h.Address, h.Port)
			if len(trust.HostKeys)+len(trust.HostCAs) == 0 {
				continue
			}
			if err := inv.SetTrust(h.Name, trust); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
			break
		}
	}
	return errors.Join(errs...)
}
