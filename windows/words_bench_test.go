package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Measures the cost for a worker of 1,000 windows of its customer, as cron text and in words.
func BenchmarkAWorkerReads1000WindowsOfItsCustomer(b *testing.B) {
	for name, start := range map[string]string{"cron": "0 2 * * SUN", "monthly": "first Sunday 02:00",
		"weekly": "every second week on Sunday 02:00 from 2026-01-04"} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString("windows:\n")
			for i := range 1000 {
				fmt.Fprintf(&text, "- {name: w%d, customer: acme, zone: Europe/Zurich, start: %q, length: 2h, "+
					"approval: none, except: [2026-12-24]}\n", i, start)
			}
			book, err := Timetable{Files: []File{{"w.yaml", text.String()}}}.Book()
			if err != nil {
				b.Fatal(err)
			}
			texts, err := book.Excerpts()
			if err != nil {
				b.Fatal(err)
			}
			now := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
			for b.Loop() {
				x, err := ReadExcerpt(texts["customer acme"])
				if err != nil {
					b.Fatal(err)
				}
				v := BookOf(x).Admit(Place{Host: "fw1", Customer: "acme"}, now, Work{Window: true,
					Estimate: 20 * time.Minute})
				if v.OK || v.Next.IsZero() {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
