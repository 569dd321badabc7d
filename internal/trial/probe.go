package trial

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"muster/internal/wording"
)

// probesMax bounds the probes of a change.
const probesMax = 20

// Probe is one condition that must hold before a change is confirmed.
type Probe struct {
	TCP string // host:port that must accept connections from the worker's node; or:
	Run string // a shell text that must exit with 0 on the host
}

// String returns the probe in the syntax of runbooks.
func (p Probe) String() string {
	if p.TCP != "" {
		return "tcp " + p.TCP
	}
	return "run " + p.Run
}

// ReadProbes reads one probe a line. A port without a host means the host of the job.
func ReadProbes(text, address string) ([]Probe, error) {
	var list []Probe
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		kind, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case line == "":
		case kind == "run" && rest != "":
			list = append(list, Probe{Run: rest})
		case kind == "tcp":
			host, port, err := net.SplitHostPort(rest)
			if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 1 || n > 65535 {
				return nil, fmt.Errorf("%s: want tcp HOST:PORT, or tcp :PORT of the host itself",
					wording.Quote(line))
			}
			if host == "" {
				host = address
			}
			list = append(list, Probe{TCP: net.JoinHostPort(host, port)})
		default:
			return nil, fmt.Errorf("%s: want tcp HOST:PORT or run COMMAND, one a line", wording.Quote(line))
		}
	}
	if len(list) > probesMax {
		return nil, fmt.Errorf("%d probes: at most %d", len(list), probesMax)
	}
	return list, nil
}

// Shell returns the text that runs the probe on the host.
func (p Probe) Shell() string {
	if strings.ContainsRune(p.Run, 0) {
		return "exit 2" // no argument contains a NUL
	}
	return "exec sh -c -- '" + strings.ReplaceAll(p.Run, "'", `'\''`) + "'"
}
