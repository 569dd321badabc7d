package times

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
	"muster/windows"
)

// importMax bounds a file that is imported, and the form that brings it.
const importMax = 1 << 20 // bytes

// An upload is a file that is imported, with what the form says about it.
type upload struct {
	name, text string
	form       url.Values
	did        *api.WindowsChanged // what it would change; nil: it was not checked
	set        string              // of the file and the state that it would change
	wrong      *frame.Problem
	no         string // why the person may not import; empty: it is allowed
}

// importForm answers GET /windows/import.
func importForm(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	showImport(p, w, r, upload{form: r.URL.Query()})
}

// showImport shows the form, and what a file would change.
func showImport(p *frame.Frame, w http.ResponseWriter, r *http.Request, u upload) {
	h := p.House(w, r)
	if err := h.May(http.MethodPut, "/v1/windows"); err != nil {
		u.no = err.Error()
	}
	s := frame.Show{Title: "Import windows or freezes", Nav: "Windows",
		Parts: []frame.Part{{ID: "import", Body: importPart(u)}}}
	if u.wrong != nil {
		s.Status = u.wrong.Status
	}
	p.Write(w, r, h, s)
}

// importFile answers POST /windows/import: it checks a file and shows what it would change, and
// applies one that was checked, if it would still change the same.
func importFile(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h := p.House(w, r)
	r.Body = http.MaxBytesReader(w, r.Body, importMax)
	u, err := uploadOf(r)
	if err == nil {
		err = u.check(h)
	}
	if err == nil && r.PostFormValue("go") == "apply" {
		if err = u.apply(h, r.PostFormValue("set")); err == nil {
			http.Redirect(w, r, "/windows?did=apply", http.StatusSeeOther)
			return
		}
	}
	if err != nil {
		u.wrong = frame.ProblemOf(err)
	}
	showImport(p, w, r, u)
}

// uploadOf reads the form: the file itself, or its text as it was checked before.
func uploadOf(r *http.Request) (upload, error) {
	if err := r.ParseMultipartForm(importMax); err != nil {
		return upload{}, frame.Refusal(http.StatusUnprocessableEntity,
			"the file cannot be read: %s. A file may have 1 MiB", err)
	}
	u := upload{form: r.PostForm, name: r.PostFormValue("file_name"), text: r.PostFormValue("text")}
	f, head, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) && u.text != "" {
		return u, nil
	}
	if err != nil {
		return u, frame.Refusal(http.StatusUnprocessableEntity, "choose a file")
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return u, err
	}
	u.name, u.text = filepath.Base(head.Filename), string(b)
	return u, nil
}

// request returns the file as the API takes it: one of windows as it is, a calendar with an entry
// that names it.
func (u upload) request() api.WindowsRequest {
	reason := strings.TrimSpace(u.form.Get("reason"))
	file := windows.File{Name: u.name, Content: u.text}
	body := api.WindowsRequest{OrderRequest: api.OrderRequest{Reason: reason}}
	if !strings.HasSuffix(strings.ToLower(u.name), ".ics") {
		body.Files = []windows.File{file}
		return body
	}
	entry := map[string]string{"ics": u.name}
	for _, name := range []string{"name", "customer", "zone"} {
		entry[name] = strings.TrimSpace(u.form.Get(name))
	}
	kind := "windows"
	if u.form.Get("kind") == "freeze" {
		kind, entry["reason"] = "freezes", reason
	} else {
		entry["approval"] = "required"
	}
	// JSON is YAML. Texts always become JSON.
	text, _ := json.Marshal(map[string]any{kind: []any{entry}})
	body.Files = []windows.File{{Name: "imported.yaml", Content: string(text) + "\n"}}
	body.Attached = []windows.File{file}
	return body
}

// check asks what the file would change. Nothing is done.
func (u *upload) check(h frame.House) error {
	body, did := u.request(), api.WindowsChanged{}
	body.Check = true
	if err := h.Call(http.MethodPut, "/v1/windows", body, &did); err != nil {
		return err
	}
	u.did, u.set = &did, frame.SetOf(did.Basis, u.name, u.text, did.Added, did.Changed, did.Void)
	return nil
}

// apply puts the file in force, if it would change what was shown.
func (u *upload) apply(h frame.House, set string) error {
	if set != u.set {
		return frame.Refusal(http.StatusConflict, "nothing was done: what the file would change is "+
			"another set than the page showed. Look at it below, and apply it again if you mean it")
	}
	body := u.request()
	body.Basis = u.did.Basis
	return h.Call(http.MethodPut, "/v1/windows", body, nil)
}
