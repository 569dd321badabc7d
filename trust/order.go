package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/fleet"
	"muster/jobs"
)

// Namespaces of signatures, as in PROTOCOL.sshsig of OpenSSH: a signature for one of them proves
// nothing for another.
const (
	NamespaceOrder = "muster-order"
	NamespaceGate  = "muster-gate"
	NamespaceTimes = "muster-windows"
)

// Validity is the longest time from the first moment at which an order may begin to its end. Hosts
// remember for as long which jobs they have ended, so an older order cannot be brought back.
const Validity = 7 * 24 * time.Hour

// version is the form of an order. A child refuses any other.
const version = 1

// OrderMax bounds the bytes of an order.
const OrderMax = 16 << 20

// An Order says what may happen under a task.
type Order struct {
	Version      int         `json:"order"` // the form: 1
	Installation string      `json:"installation"`
	Task         jobs.TaskID `json:"task"`
	NotBefore    time.Time   `json:"not_before"` // no step begins earlier
	NotAfter     time.Time   `json:"not_after"`  // no job begins later

	// Spec is the frozen request: runbook, values, operator, reason, limits, windows. It is the JSON
	// of a jobs.Spec.
	Spec  json.RawMessage `json:"spec"`
	Zones []Zone          `json:"zones"` // in the order of their names

	// BreakGlass is the reason why the one who ordered runs it without the other people whom the
	// policy wants; empty: that is not so.
	BreakGlass string `json:"break_glass,omitempty"`
	// Times is the time since which the timetable has been in force that the server knew; zero: none.
	// A node that has seen the order believes no earlier timetable.
	Times time.Time `json:"times,omitzero"`

	// Kin has the other members of the redundancy groups of the hosts. New puts their records beside
	// those of the hosts: no job runs on them, and nodes write markers there.
	Kin []fleet.Host `json:"-"`
}

// A Zone is the part of an order for the hosts of one zone.
type Zone struct {
	Name   string   `json:"zone"`
	Hosts  int      `json:"hosts"`  // how many
	Shares []string `json:"shares"` // hashes of the lines of each share, in base64
}

// ErrOrder is the error of bytes that are no order which this muster knows.
var ErrOrder = errors.New("it is no order that this muster can read")

// Lines are the shares of the hosts of an order, by zone: a text for each share.
type Lines map[string][]string

// shareSize is the number of hosts that a share has on average.
const shareSize = 400

// New makes the bytes of an order, and the lines that belong to it. The order needs no zones: they
// are those of the hosts. RecordOf, or a Records, gives the records of the hosts.
func New(o Order, hosts []fleet.Host, recordOf RecordFunc) (order []byte, lines Lines, err error) {
	o.Version = version
	o.NotBefore, o.NotAfter = o.NotBefore.UTC(), o.NotAfter.UTC()
	if o.NotAfter.Sub(o.NotBefore) > Validity {
		return nil, nil, fmt.Errorf("an order from %s to %s: want at most %s", o.NotBefore, o.NotAfter,
			Validity)
	}
	byZone, kin := inZones(hosts), inZones(o.Kin)
	lines = Lines{}
	for _, name := range slices.Sorted(maps.Keys(byZone)) {
		texts, err := shares(byZone[name], kin[name], recordOf)
		if err != nil {
			return nil, nil, err
		}
		z := Zone{Name: name, Hosts: len(byZone[name])}
		for _, text := range texts {
			z.Shares = append(z.Shares, hash([]byte(text)))
		}
		o.Zones, lines[name] = append(o.Zones, z), texts
	}
	order, err = json.Marshal(o)
	if err == nil && len(order) > OrderMax {
		err = fmt.Errorf("the order has %d bytes: at most %d", len(order), OrderMax)
	}
	return order, lines, err
}

func inZones(hosts []fleet.Host) map[string][]*fleet.Host {
	zones := map[string][]*fleet.Host{}
	for i := range hosts {
		zones[hosts[i].Zone] = append(zones[hosts[i].Zone], &hosts[i])
	}
	return zones
}

// asKin ends the line of a host that is only kin of the hosts of an order. A node that does not
// know the word takes the line for a record that no host has.
const asKin = " kin"

// shares returns the lines of the hosts of one zone and of their kin, by share.
func shares(hosts, kin []*fleet.Host, recordOf RecordFunc) ([]string, error) {
	n := (len(hosts) + len(kin) + shareSize - 1) / shareSize
	made, err := linesOf(slices.Concat(hosts, kin), recordOf)
	if err != nil {
		return nil, err
	}
	parts := make([][]string, n)
	for i, h := range hosts {
		at := shareOf(h.Name, n)
		parts[at] = append(parts[at], made[i])
	}
	for i, h := range kin {
		line := strings.TrimSuffix(made[len(hosts)+i], "\n") + asKin + "\n"
		at := shareOf(h.Name, n)
		parts[at] = append(parts[at], line)
	}
	texts := make([]string, n)
	for i, part := range parts {
		slices.Sort(part)
		texts[i] = strings.Join(part, "")
	}
	return texts, nil
}

// linesOf returns the line of each host. It uses all processors: of 100,000 hosts the hashes are
// most of the work of an order.
func linesOf(hosts []*fleet.Host, recordOf RecordFunc) ([]string, error) {
	lines, errs := make([]string, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	most := (len(hosts) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	for from := 0; from < len(hosts); from += most {
		all.Go(func() {
			for i := from; i < min(from+most, len(hosts)); i++ {
				record, err := recordOf(*hosts[i])
				lines[i], errs[i] = hosts[i].Name+" "+record+"\n", err
			}
		})
	}
	all.Wait()
	return lines, errors.Join(errs...)
}

// RecordOf returns the hash of all that a node knows of a host, in base64: how it is reached, its
// keys, its group, its labels. A field that a later muster adds to fleet.Host must be left out of
// its JSON while it is empty; then only hosts that have it are refused by nodes that ignore it.
func RecordOf(h fleet.Host) (string, error) {
	text, err := json.Marshal(h)
	return hash(text), err
}

// shareOf returns the share of a zone, of n, that a host is in.
func shareOf(host string, n int) int {
	sum := sha256.Sum256([]byte(host))
	return int(binary.BigEndian.Uint32(sum[:]) % uint32(n))
}

// hash returns the SHA-256 of bytes in base64.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// HashOf returns the name of an order, by which people compare it: the SHA-256 of its bytes.
func HashOf(order []byte) string { return "SHA256:" + hash(order) }

// Parse reads the bytes of an order. Its errors wrap ErrOrder.
func Parse(order []byte) (*Order, error) {
	if len(order) > OrderMax {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrOrder, len(order), OrderMax)
	}
	var o Order
	d := json.NewDecoder(bytes.NewReader(order))
	d.DisallowUnknownFields() // a later muster may mean a limit by it
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: there is more behind it", ErrOrder)
	}
	if o.Version != version {
		return nil, fmt.Errorf("%w: its form is %d, and this node knows %d", ErrOrder, o.Version, version)
	}
	if span := o.NotAfter.Sub(o.NotBefore); span <= 0 || span > Validity {
		return nil, fmt.Errorf("%w: it is good from %s to %s", ErrOrder, o.NotBefore, o.NotAfter)
	}
	return &o, nil
}

// zone returns the part for a zone; nil: there is none.
func (o *Order) zone(name string) *Zone {
	for i := range o.Zones {
		if o.Zones[i].Name == name {
			return &o.Zones[i]
		}
	}
	return nil
}

// ShareOf returns the number of the share that a host is in. It returns false if the order is not
// for the zone.
func (o *Order) ShareOf(zone, host string) (int, bool) {
	z := o.zone(zone)
	if z == nil || len(z.Shares) == 0 {
		return 0, false
	}
	return shareOf(host, len(z.Shares)), true
}

// Share reads the lines of a share: the records of its hosts, by name. It refuses lines that the
// order does not have.
func (o *Order) Share(zone string, share int, lines string) (map[string]string, error) {
	hosts, _, err := o.ShareAndKin(zone, share, lines)
	return hosts, err
}

// ShareAndKin reads the lines of a share: the records of its hosts, and of their kin, by name. It
// refuses lines that the order does not have.
func (o *Order) ShareAndKin(zone string, share int, lines string) (hosts, kin map[string]string,
	err error) {
	z := o.zone(zone)
	if z == nil || share < 0 || share >= len(z.Shares) {
		return nil, nil, fmt.Errorf("the order is not for zone %s", zone)
	}
	if hash([]byte(lines)) != z.Shares[share] {
		return nil, nil, errors.New("the list of its hosts is not the one that was signed")
	}
	hosts, kin = map[string]string{}, map[string]string{}
	for line := range strings.Lines(lines) {
		name, record, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if record, is := strings.CutSuffix(record, asKin); is {
			kin[name] = record
		} else {
			hosts[name] = record
		}
	}
	return hosts, kin, nil
}
