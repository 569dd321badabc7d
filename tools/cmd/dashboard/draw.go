package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// The sizes of the picture, in pixels.
const (
	column    = 46
	row       = 26
	gap       = 8
	legendRow = 13
	legendMax = 6 // names below a panel
)

// colours are those of lines. Colours that follow each other differ also for people who see few.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#5b4b8a", "#7f7f00",
	"#333333", "#a0522d"}

// A drawing is an SVG that grows by panels.
type drawing struct {
	b        bytes.Buffer
	from, to time.Time
}

func newDrawing(b board, from, to time.Time) *drawing {
	d := &drawing{from: from, to: to}
	high := 0
	for _, p := range b.Panels {
		high = max(high, (p.GridPos.Y+p.GridPos.H)*row)
	}
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" `+
		`font-size="10">`+"\n"+`<rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n", 24*column, high+gap)
	return d
}

func (d *drawing) end() []byte {
	d.b.WriteString("</svg>\n")
	return d.b.Bytes()
}

func (d *drawing) text(x, y float64, style, words string) {
	fmt.Fprintf(&d.b, `<text x="%.0f" y="%.0f" %s>%s</text>`+"\n", x, y, style, html.EscapeString(words))
}

// A box is where something is drawn.
type box struct{ x, y, w, h float64 }

// panel draws one panel.
func (d *drawing) panel(p panel, all []series) {
	at := box{float64(p.GridPos.X*column + gap/2), float64(p.GridPos.Y*row + gap/2),
		float64(p.GridPos.W*column - gap), float64(p.GridPos.H*row - gap)}
	fmt.Fprintf(&d.b, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="#fff" stroke="#d8d9da"/>`+"\n",
		at.x, at.y, at.w, at.h)
	d.text(at.x+8, at.y+15, `font-weight="bold" font-size="11"`, p.Title)
	slices.SortStableFunc(all, func(a, b series) int {
		return cmp.Or(-cmp.Compare(highest(a), highest(b)), cmp.Compare(a.name, b.name))
	})
	unit := p.FieldConfig.Defaults.Unit
	switch {
	case len(all) == 0:
		d.text(at.x+at.w/2, at.y+at.h/2, `text-anchor="middle" fill="#b00" font-size="14"`, "No data")
	case p.Type == "stat":
		d.stat(at, all, unit)
	default:
		d.lines(at, all, unit)
	}
}

// stat draws the last values, as a panel of the kind stat does. Of an expression that is not
// instant these may be long over.
func (d *drawing) stat(at box, all []series, unit string) {
	y := at.y + 34
	for _, s := range all {
		d.text(at.x+12, y, `font-size="13"`, s.name)
		d.text(at.x+at.w-12, y, `font-size="13" text-anchor="end" fill="#0072b2"`, amount(s.last(), unit))
		y += 16
	}
}

// lines draws series over time, with a legend of the greatest ones.
func (d *drawing) lines(at box, all []series, unit string) {
	legends := min(len(all), legendMax)
	plot := box{at.x + 46, at.y + 24, at.w - 58, at.h - 44 - float64((legends+1)/2*legendRow)}
	top := nice(highest(all[0]))
	for i := range 3 {
		y := plot.y + plot.h*float64(i)/2
		fmt.Fprintf(&d.b, `<path d="M%.0f %.1fh%.0f" stroke="#e4e5e6"/>`+"\n", plot.x, y, plot.w)
		d.text(plot.x-5, y+3, `text-anchor="end" fill="#555"`, amount(top*float64(2-i)/2, unit))
	}
	for i := range 5 {
		t := d.from.Add(d.to.Sub(d.from) * time.Duration(i) / 4)
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		d.text(plot.x+plot.w*float64(i)/4, plot.y+plot.h+13, `text-anchor="`+anchor+`" fill="#555"`,
			t.UTC().Format("15:04:05"))
	}
	for i, s := range all {
		colour := colours[i%len(colours)]
		fmt.Fprintf(&d.b, `<path fill="none" stroke="%s" stroke-width="1.3" d="%s"/>`+"\n", colour, d.path(plot, s, top))
		if i >= legends {
			continue
		}
		words := s.name + "  " + amount(s.last(), unit)
		if i == legendMax-1 && len(all) > legendMax {
			words += fmt.Sprintf("  (and %d more)", len(all)-legendMax)
		}
		x, y := at.x+12+float64(i%2)*at.w/2, plot.y+plot.h+26+float64(i/2*legendRow)
		fmt.Fprintf(&d.b, `<rect x="%.0f" y="%.0f" width="9" height="3" fill="%s"/>`+"\n", x, y-5, colour)
		d.text(x+13, y, `fill="#333"`, words)
	}
}

// path draws one series; where samples are missing there is a gap.
func (d *drawing) path(in box, s series, top float64) string {
	var b strings.Builder
	joined := func(i int) bool { // with the sample before
		return i > 0 && i < len(s.points) && s.points[i].at.Sub(s.points[i-1].at) <= d.to.Sub(d.from)/60
	}
	for i, p := range s.points {
		if joined(i) && joined(i+1) && s.points[i-1].value == p.value && s.points[i+1].value == p.value {
			continue // it is on the line between its neighbours
		}
		x := in.x + in.w*float64(p.at.Sub(d.from))/float64(d.to.Sub(d.from))
		y := in.y + in.h*(1-max(0, p.value)/top)
		if joined(i) {
			fmt.Fprintf(&b, "L%.1f %.1f", x, y)
		} else {
			fmt.Fprintf(&b, "M%.1f %.1fh.8", x, y) // a sample alone is a dot
		}
	}
	return b.String()
}

func highest(s series) float64 {
	most := 0.0
	for _, p := range s.points {
		most = max(most, p.value)
	}
	return most
}

// nice returns the next of 1, 2, 5, 10, … that is not below a number.
func nice(n float64) float64 {
	if n <= 0 {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(n)))
	for _, k := range []float64{1, 2, 5, 10} {
		if n <= k*base*1.0001 {
			return k * base
		}
	}
	return 10 * base
}

// amount writes a value in a unit of Grafana.
func amount(n float64, unit string) string {
	switch {
	case unit == "s" && n != 0 && n < 1:
		return fmt.Sprintf("%.3g ms", n*1000)
	case unit == "s":
		return fmt.Sprintf("%.3g s", n)
	case unit == "ops":
		return fmt.Sprintf("%.3g/s", n)
	}
	return fmt.Sprintf("%.4g", n)
}
