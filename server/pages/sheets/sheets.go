package sheets

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"muster/server/pages/frame"
	"muster/server/web"
)

// A sheet is a list that becomes a file.
type sheet struct {
	name    string   // of the file, without its ending
	columns []string // the heads of its columns
	// next returns the page behind a cursor; the first one is behind the empty cursor.
	next func(cursor string) (page, error)
}

// A page is a part of a list.
type page struct {
	rows []row
	next string // the cursor of the next page; empty: this was the last
}

// A row is one thing of a list.
type row struct {
	cells []string // one for each column
	whole any      // the thing as the API gives it
}

// A source returns the sheet that a request asks for.
type source func(h frame.House, r *http.Request) sheet

// A form writes a sheet.
type form struct {
	ending, kind string
	begin        func(w io.Writer, columns []string) error
	row          func(w io.Writer, n int, r row) error
	end          func(w io.Writer) error
}

// answer returns the answer that gives a sheet as a file. The first page is read before the file
// begins, so that a mistake in a filter and a missing right are a page with words. If a later page
// cannot be read, the connection is cut: nobody may take a part of a list for all of it.
func answer(open source, f form) frame.Answer {
	return func(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
		h := p.House(w, r)
		s := open(h, r)
		part, err := s.next("")
		if err != nil {
			p.Refuse(w, r, h, err)
			return
		}
		head := w.Header()
		head.Set("Content-Type", f.kind)
		head.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", s.name+f.ending))
		if err := write(w, s, part, f); err != nil && r.Context().Err() == nil {
			panic(fmt.Errorf("the file %s%s broke off: %w", s.name, f.ending, err))
		}
	}
}

// write writes a sheet, of which the first page is read.
func write(w http.ResponseWriter, s sheet, part page, f form) error {
	if err := f.begin(w, s.columns); err != nil {
		return err
	}
	rc, n := http.NewResponseController(w), 0
	for {
		if err := rc.SetWriteDeadline(time.Now().Add(web.AnswerTimeout)); err != nil {
			return err
		}
		for _, one := range part.rows {
			if err := f.row(w, n, one); err != nil {
				return err
			}
			n++
		}
		if part.next == "" {
			return f.end(w)
		}
		if err := rc.Flush(); err != nil {
			return err
		}
		var err error
		if part, err = s.next(part.next); err != nil {
			return err
		}
	}
}
