package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/master/governor"
	"muster/master/steward"
)

// Governor says when a node takes less work, or none: see package governor. 0 switches a limit off.
type Governor struct {
	Every    time.Duration `mapstructure:"every"`    // between two looks at the machine; 0: none
	Load     int           `mapstructure:"load"`     // for each core, at most
	Pressure int           `mapstructure:"pressure"` // percent of the time that waits for memory
	Memory   int           `mapstructure:"memory"`   // percent that must be free, as those below
	Disk     int           `mapstructure:"disk"`
	Pids     int           `mapstructure:"pids"`
	Files    int           `mapstructure:"files"`
	Ramp     bool          `mapstructure:"ramp"` // the more children run, the fewer and later others
}

// governorDefaults returns the defaults of Governor.
func governorDefaults() map[string]any {
	l := governor.DefaultLimits()
	return map[string]any{
		"master.governor.every":    10 * time.Second,
		"master.governor.load":     int(l.Load),
		"master.governor.pressure": int(l.Pressure),
		"master.governor.memory":   int(l.Memory),
		"master.governor.disk":     int(l.Disk),
		"master.governor.pids":     int(l.Pids),
		"master.governor.files":    int(l.Files),
		"master.governor.ramp":     true,
	}
}

// zones returns the zones that a node is for, whoever else is there.
func (m Master) zones() []string {
	if m.Unzoned && !slices.Contains(m.Zones, fleet.DefaultZone) {
		return append(slices.Clone(m.Zones), fleet.DefaultZone)
	}
	return m.Zones
}

// AllZones returns the zones that a node may ever work for.
func (m Master) AllZones() []string {
	all := slices.Clone(m.zones())
	standby, _ := m.standby() // Validate has reported its mistakes
	for zone := range standby {
		all = append(all, zone)
	}
	slices.Sort(all[len(m.zones()):])
	return all
}

// The bounds of a time in master.standby: shorter than the first, a node that starts anew would be
// taken for one that is gone.
const standbyMin, standbyMax = 30 * time.Second, 24 * time.Hour

// standby reads the zones for which a node stands in, each with its time.
func (m Master) standby() (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, pair := range m.Standby {
		zone, text, _ := strings.Cut(pair, "=")
		after, want := convert(text, time.Duration(0))
		switch {
		case fleet.CheckZone(zone) != nil:
			bad("master.standby: %q: want ZONE=TIME such as zrh=10m: %w", pair, fleet.CheckZone(zone))
		case want != "":
			bad("master.standby: %q: want ZONE=TIME such as zrh=10m", pair)
		case after.(time.Duration) < standbyMin || after.(time.Duration) > standbyMax:
			bad("master.standby: %s: want %s to %s", pair, standbyMin, standbyMax)
		case slices.Contains(m.zones(), zone):
			bad("master.standby: %s is among the own zones of this node already", zone)
		case out[zone] > 0:
			bad("master.standby: %s is there twice", zone)
		default:
			out[zone] = after.(time.Duration)
		}
	}
	return out, errors.Join(errs...)
}

// StewardConfig is the configuration of what looks after a node.
func (s Settings) StewardConfig() steward.Config {
	g := s.Master.Governor
	standby, _ := s.Master.standby() // Validate has reported its mistakes
	return steward.Config{Every: g.Every, Ramp: g.Ramp && g.Every > 0, Children: s.Master.Children,
		Standby: standby, Limits: governor.Limits{Load: float64(g.Load), Pressure: float64(g.Pressure),
			Memory: float64(g.Memory), Disk: float64(g.Disk), Pids: float64(g.Pids),
			Files: float64(g.Files)}}
}

// validateGovernor reports every mistake in the settings of what looks after a node.
func (s Settings) validateGovernor() error {
	_, err := s.Master.standby()
	errs := []error{err}
	s.StewardConfig().Validate(func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("master.governor."+format, args...))
		}
	})
	return errors.Join(errs...)
}
