package sources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/files"
)

// SSHHosts makes hosts of what OpenSSH knows of them: files such as ~/.ssh/config, and
// the known_hosts files of the configuration.
func SSHHosts(c Config, files []string) (fleet.Part, error) {
	var known []*remote.KnownHosts
	var errs []error
	for _, path := range c.KnownHosts {
		k, err := remote.ReadKnownHosts(path)
		switch {
		case err == nil:
			known = append(known, k)
		case !errors.Is(err, os.ErrNotExist):
			errs = append(errs, err)
		}
	}
	configs, err := readAll(files)
	if err := errors.Join(append(errs, err)...); err != nil {
		return fleet.Part{}, err
	}
	in := fleet.ImportSSHConfig(fleet.SSHConfig{Files: configs, Home: c.Home,
		Include: func(pattern string) ([]fleet.Source, error) {
			found, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			return readAll(found)
		},
		Trust: func(address string, port int) fleet.Trust {
			for _, k := range known {
				if t := k.Trust(address, port); len(t.HostKeys)+len(t.HostCAs) > 0 {
					return t
				}
			}
			return fleet.Trust{}
		}})
	part := fleet.Part{Files: files, Notes: in.Notes}
	for _, h := range in.Hosts {
		part.Entries = append(part.Entries, fleet.Entry{Host: h})
	}
	return part, nil
}

func readAll(paths []string) ([]fleet.Source, error) {
	var all []fleet.Source
	var errs []error
	for _, path := range paths {
		data, err := files.Read(path, fileMax)
		if err != nil {
			errs = append(errs, fmt.Errorf("ssh_config: %w", err))
			continue
		}
		all = append(all, fleet.Source{Name: path, Data: data})
	}
	return all, errors.Join(errs...)
}
