package jobs

import (
	"fmt"
	"strconv"
	"time"

	"muster/internal/wording"
)

// Micros is an instant as Redis' TIME returns it: whole microseconds since the Unix epoch. It is
// sent as a decimal string, because a Lua number that becomes text loses digits on Redis 7.0
// (design §4). 0 means "not set".
type Micros int64

// ParseMicros reads the decimal form. The empty string is 0.
func ParseMicros(s string) (Micros, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("instant %q: want whole microseconds", wording.Clip(s))
	}
	return Micros(n), nil
}

// MicrosOf returns the instant t. The zero time becomes 0.
func MicrosOf(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// String returns the decimal form.
func (m Micros) String() string { return strconv.FormatInt(int64(m), 10) }

// Time returns the instant in UTC; the zero time if m is not set.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Add returns the instant d later.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d/time.Microsecond) }

// Sub returns the time from o to m.
func (m Micros) Sub(o Micros) time.Duration { return time.Duration(m-o) * time.Microsecond }
