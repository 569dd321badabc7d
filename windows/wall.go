package windows

import (
	"fmt"
	"time"
)

// Wall is the reading of a clock with a calendar at an unnamed place: seconds since 1970-01-01
// 00:00:00 of that clock. Readings can be compared and added to, but only a [Zone] converts them
// to instants.
type Wall int64

// day is a day in seconds, by the clock.
const day = 24 * 3600

// readingForms lists the forms in which people write readings.
var readingForms = [...]string{
	"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05",
	time.DateOnly,
}

// ParseWall reads "2026-12-24 22:00", also with T instead of the blank, and with seconds. A date
// alone means its first second.
func ParseWall(s string) (Wall, error) {
	for _, form := range readingForms {
		if t, err := time.Parse(form, s); err == nil {
			return Wall(t.Unix()), nil
		}
	}
	return 0, fmt.Errorf("%q is no date and time: want 2026-12-24 22:00", clip(s))
}

// String returns the reading as "2026-12-24 22:00", with seconds if it has any.
func (w Wall) String() string {
	t := time.Unix(int64(w), 0).UTC()
	if t.Second() != 0 {
		return t.Format(time.DateTime)
	}
	return t.Format(readingForms[0])
}

// midnight returns the first reading of w's day.
func (w Wall) midnight() Wall { return w - w.clock() }

// clock returns the seconds since midnight at w.
func (w Wall) clock() Wall {
	c := w % day
	if c < 0 {
		c += day
	}
	return c
}

// date returns the date of a reading.
func (w Wall) date() (year int, month time.Month, dayOf int) {
	return time.Unix(int64(w), 0).UTC().Date()
}

// weekday returns the weekday of a reading. 1970 began on a Thursday.
func (w Wall) weekday() time.Weekday {
	d := (int64(w.midnight())/day + int64(time.Thursday)) % 7
	if d < 0 {
		d += 7
	}
	return time.Weekday(d)
}

// parseClock reads a time of the day, 00:00 to 24:00, as seconds.
func parseClock(s string) (Wall, error) {
	if s == "24:00" {
		return day, nil
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(form, s); err == nil {
			return Wall(t.Hour()*3600 + t.Minute()*60 + t.Second()), nil
		}
	}
	return 0, fmt.Errorf("%q is no time of the day: want 04:00, up to 24:00", clip(s))
}
