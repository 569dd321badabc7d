package ansible

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"muster/fleet"
	"muster/internal/lazyregexp"
	"muster/internal/wording"
)

const (
	// rangeMax bounds the hosts of one pattern, and hostsMax those of a whole inventory,
	// because a short line could otherwise expand to any size.
	rangeMax = 100_000
	hostsMax = 200_000
)

var (
	bracketPort = lazyregexp.New(`^\[(.+)\]:([0-9]+)$`)
	plainPort   = lazyregexp.New(`^((?:[^:\[\]]|\[[^\]]*\])*):([0-9]+)$`)
	// hostForm matches the text before a port: names and addresses, with ranges in them.
	hostForm = lazyregexp.New(`(?i)^` + labelForm + `(?:\.` + labelForm + `)*$`)
)

// labelForm matches one part of a host name, which ends in neither '-' nor '_'.
const (
	rangeForm = `\[(?:[a-z]:[a-z]|[0-9]+:[0-9]+)(?::[0-9]+)?\]`
	labelForm = `(?:(?:[\pL\pN_]|` + rangeForm + `)(?:[\pL\pN_-]|` + rangeForm + `)*)?` +
		`(?:[\pL\pN]|` + rangeForm + `)`
)

// expand returns the names of a host pattern, such as fw[001:300]:2222, and its port, or 0
// if it has none.
func expand(pattern string) (names []string, port int, err error) {
	host, port := cutPort(pattern)
	switch {
	case strings.HasSuffix(host, ":"):
		return nil, 0, fmt.Errorf("host pattern %q ends in ':': remove it", fleet.Word(pattern))
	case !strings.Contains(host, "["):
		return []string{host}, port, nil
	}
	names, err = expandRanges(host)
	if err != nil {
		return nil, 0, fmt.Errorf("host pattern %s: %w", short(pattern), err)
	}
	return names, port, nil
}

// cutPort cuts the port off a pattern, if the rest can be the name of a host.
func cutPort(pattern string) (host string, port int) {
	for _, m := range [][]string{bracketPort().FindStringSubmatch(pattern),
		plainPort().FindStringSubmatch(pattern)} {
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		_, ipErr := netip.ParseAddr(m[1])
		if err == nil && (ipErr == nil || hostForm().MatchString(m[1])) {
			return m[1], n
		}
	}
	return pattern, 0
}

// expandRanges returns the names for all combinations of the ranges in a pattern.
func expandRanges(pattern string) ([]string, error) {
	done := []string{""}
	for rest := pattern; ; {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			return appendEach(done, []string{rest})
		}
		end := strings.IndexByte(rest, ']')
		if end < open {
			return nil, errors.New("has a '[' without ']'")
		}
		members, err := members(rest[open+1 : end])
		if err != nil {
			return nil, fmt.Errorf("range [%s]: %w", rest[open+1:end], err)
		}
		for i := range members {
			members[i] = rest[:open] + members[i]
		}
		if done, err = appendEach(done, members); err != nil {
			return nil, err
		}
		rest = rest[end+1:]
	}
}

// appendEach returns every combination of a beginning and an end.
func appendEach(beginnings, ends []string) ([]string, error) {
	if len(beginnings)*len(ends) > rangeMax {
		return nil, fmt.Errorf("stands for more than %d hosts", rangeMax)
	}
	all := make([]string, 0, len(beginnings)*len(ends))
	for _, b := range beginnings {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return all, nil
}

// members returns the members of a range begin:end or begin:end:step, of numbers or letters.
func members(text string) ([]string, error) {
	bounds := strings.Split(text, ":")
	if len(bounds) != 2 && len(bounds) != 3 {
		return nil, errors.New("want begin:end or begin:end:step")
	}
	step := 1
	if len(bounds) == 3 {
		var err error
		if step, err = number(bounds[2]); err != nil || step < 1 {
			return nil, fmt.Errorf("step %s: want a number from 1 on", short(bounds[2]))
		}
	}
	first, last := bounds[0], bounds[1]
	if first == "" {
		first = "0"
	}
	if place(first) >= 0 && place(last) >= 0 {
		return letters(place(first), place(last), step)
	}
	a, errA := number(first)
	b, errB := number(last)
	switch {
	case errA != nil || errB != nil:
		return nil, errors.New("want two numbers, or two letters")
	case a > b:
		return nil, errors.New("begins after its end")
	case (b-a)/step >= rangeMax:
		return nil, fmt.Errorf("stands for more than %d hosts", rangeMax)
	}
	width := 0
	if len(first) > 1 && first[0] == '0' {
		if width = len(first); width != len(last) {
			return nil, fmt.Errorf("with leading zeros both ends want the same length: %s:%0*d",
				first, width, b)
		}
	}
	var all []string
	for n := a; n <= b; n += step {
		all = append(all, fmt.Sprintf("%0*d", width, n))
	}
	return all, nil
}

// alphabet is the order of letters in ranges.
const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// place returns the index of a letter in the alphabet, or -1.
func place(s string) int {
	if len(s) != 1 {
		return -1
	}
	return strings.Index(alphabet, s)
}

func letters(a, b, step int) ([]string, error) {
	if a > b {
		return nil, errors.New("begins after its end")
	}
	var all []string
	for i := a; i <= b; i += step {
		all = append(all, alphabet[i:i+1])
	}
	return all, nil
}

func number(s string) (int, error) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("not a number")
	}
	return strconv.Atoi(s)
}

// short quotes a text from a file for a message and bounds its length.
func short(s string) string { return wording.Quote(s) }
