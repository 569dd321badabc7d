package reach

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/fleet"
	"muster/internal/settings"
	"muster/internal/sources"
)

// FileFlags name the configuration.
type FileFlags struct {
	config string
	Away   bool // known_hosts files of the inventory may be missing here
}

// AddFileFlags adds the flag --config to a command.
func AddFileFlags(c *cobra.Command) *FileFlags {
	f := &FileFlags{}
	c.Flags().StringVar(&f.config, "config", os.Getenv("MUSTER_CONFIG"),
		"configuration `file` (default "+settings.DefaultConfig+" if it is there)")
	return f
}

// Inventory reads the given sources, or else those of the configuration, which also says where to
// look up host keys.
func (f *FileFlags) Inventory(ctx context.Context, named []string) (*fleet.Inventory, error) {
	cfg, err := f.Sources(named)
	if err != nil {
		return nil, err
	}
	return readInventory(ctx, cfg)
}

// Sources returns the given sources, or else those of the configuration.
func (f *FileFlags) Sources(named []string) (sources.Config, error) {
	cfg, err := f.read()
	if err != nil {
		return cfg, err
	}
	if len(named) > 0 {
		cfg.List = named
	}
	if len(cfg.List) == 0 {
		return cfg, cli.Exit(cli.ExitUsage, errors.New(
			"no inventory is configured: name its files, or list "+
				"them under `inventory` in muster.yaml"))
	}
	if err := cfg.Validate(); err != nil {
		return cfg, cli.Exit(cli.ExitUsage, err)
	}
	return cfg, nil
}

// Imported reads sources and files of OpenSSH.
func (f *FileFlags) Imported(ctx context.Context, named, ssh []string) (*fleet.Inventory, error) {
	cfg, err := f.read()
	if err != nil {
		return nil, err
	}
	cfg.List = named
	if len(ssh) > 0 {
		part, err := sources.SSHHosts(cfg, ssh)
		if err != nil {
			return nil, cli.Exit(cli.ExitNotAll, err)
		}
		cfg.More = append(cfg.More, part)
	}
	return readInventory(ctx, cfg)
}

// Settings returns the configuration.
func (f *FileFlags) Settings() (settings.Settings, error) {
	return settings.Read(settings.Source{File: f.File(), Env: os.Environ()})
}

// File returns the path of the configuration; empty: there is none.
func (f *FileFlags) File() string {
	if f.config == "" {
		if _, err := os.Stat(settings.DefaultConfig); err == nil {
			return settings.DefaultConfig
		}
	}
	return f.config
}

// read returns the inventory settings of the configuration.
func (f *FileFlags) read() (sources.Config, error) {
	s, err := f.Settings()
	if err != nil {
		return sources.Config{}, cli.Exit(cli.ExitUsage, err)
	}
	cfg := s.Sources()
	cfg.Away = f.Away
	return cfg, nil
}

func readInventory(ctx context.Context, cfg sources.Config) (*fleet.Inventory, error) {
	if err := cfg.Validate(); err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	inv, err := sources.New(cfg).Read(ctx, time.Now())
	if err != nil {
		return nil, cli.Exit(cli.ExitNotAll, err)
	}
	return inv, nil
}
