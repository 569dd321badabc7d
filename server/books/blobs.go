package books

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/scripts"
	"muster/server/web"
)

type (
	blobsOutput struct{ Body api.BlobList }

	putBlobInput struct {
		web.Asked
		Sent
		Sum  string `path:"sum" doc:"SHA-256 of the content, in hex"`
		Size int64  `query:"size" required:"true" minimum:"0" doc:"bytes of the content"`
		Name string `query:"name" maxLength:"255" doc:"of the file, for people"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	}
	putBlobOutput struct{ Body jobs.Blob }

	blobInput struct {
		Sum string `path:"sum"`
	}
	removeBlobInput struct {
		web.Whose
		Sum   string `path:"sum"`
		Force bool   `query:"force" doc:"also if tasks need it: their jobs will fail"`
	}
)

// Sent is part of the input of a route that reads its body piece by piece.
type Sent struct{ body io.Reader }

// Resolve finds the body. Each piece of it has the time that other bodies have for the whole.
func (b *Sent) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	b.body = slowBody{r.Body, http.NewResponseController(w)}
	return nil
}

type slowBody struct {
	io.Reader
	conn *http.ResponseController
}

// Read reads a piece.
func (b slowBody) Read(p []byte) (int, error) {
	now := time.Now()
	if err := errors.Join(b.conn.SetReadDeadline(now.Add(web.BodyTimeout)),
		b.conn.SetWriteDeadline(now.Add(web.AnswerTimeout))); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// BlobRoutes stores, shows and removes contents that are too large for a task.
type BlobRoutes struct {
	Store BlobStore
	Care  BlobCare
	Max   int64 // bytes of all
	Log   hclog.Logger
}

// Routes registers the routes of the resource.
func (s BlobRoutes) Routes(api huma.API) {
	const path = "/v1/blobs/{sum}"
	put := web.Operation(http.MethodPut, path, "Store a content, which is the body")
	put.Errors = append(put.Errors, http.StatusConflict)
	put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	huma.Register(api, put, s.putBlob)
	huma.Register(api, web.Get("/v1/blobs", "List the stored contents"), s.blobs)
	huma.Register(api, web.Raw(web.Get(path, "A stored content, byte for byte"),
		"application/octet-stream"), s.blob)
	huma.Register(api, web.Delete(path, "Remove a stored content"), s.removeBlob)
}

func (s BlobRoutes) putBlob(ctx context.Context, in *putBlobInput) (*putBlobOutput, error) {
	name, _, err := web.Operator(in.Caller(), "", in.User)
	wrong := web.Mistakes("header.X-Muster-User", err)
	sum, err := checkSum(in.Sum)
	if wrong = append(wrong, web.Mistakes("path.sum", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	blob := jobs.Blob{SHA256: sum, Size: in.Size, Name: in.Name, By: name}
	var b jobs.Blob
	if web.ViewOf(ctx).All() {
		b, err = s.Store.PutBlob(ctx, blob, s.Max, in.body)
	} else {
		b, err = s.putUnseen(ctx, blob, in.body)
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	s.Log.Info("blob stored", "sha256", sum, "bytes", b.Size, "name", b.Name, "by", b.By)
	return &putBlobOutput{b}, nil
}

func checkSum(text string) (string, error) { return scripts.ParseBlob(scripts.BlobName(text)) }

func (s BlobRoutes) blobs(ctx context.Context, _ *web.Nothing) (*blobsOutput, error) {
	list, err := s.Store.Blobs(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &blobsOutput{api.BlobList{Blobs: list, Max: s.Max}}
	for _, b := range list {
		out.Body.Size += b.Size
	}
	return out, nil
}

// blob answers with a content while it reads it. The answer to a damaged content ends too soon.
func (s BlobRoutes) blob(ctx context.Context, in *blobInput) (*huma.StreamResponse, error) {
	sum, err := checkSum(in.Sum)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.sum", err))
	}
	b, err := s.Store.Blob(ctx, sum)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(b.Size, 10))
		to := &lastKept{to: slowWriter{w, http.NewResponseController(w)}, left: b.Size}
		if err := s.Store.ReadBlob(ctx.Context(), sum, to); err != nil {
			s.Log.Warn("blob not sent", "sha256", sum, "error", err)
			return
		}
		_ = to.flush() // a client that does not read it has gone
	}}, nil
}

// slowWriter gives each piece the time that other answers have for the whole.
type slowWriter struct {
	io.Writer
	conn *http.ResponseController
}

// Write writes a piece.
func (s slowWriter) Write(p []byte) (int, error) {
	if err := s.conn.SetWriteDeadline(time.Now().Add(web.BodyTimeout)); err != nil {
		return 0, err
	}
	return s.Writer.Write(p)
}

// lastKept holds the last byte back until flush, so that nobody takes a damaged content for a whole
// one.
type lastKept struct {
	to   io.Writer
	left int64
	last []byte
}

// Write passes on all but the last byte.
func (l *lastKept) Write(p []byte) (int, error) {
	n := int64(len(p))
	if n >= l.left && n > 0 {
		l.last = append([]byte(nil), p[n-1])
		p = p[:n-1]
	}
	l.left -= n
	_, err := l.to.Write(p)
	return int(n), err
}

func (l *lastKept) flush() error {
	_, err := l.to.Write(l.last)
	return err
}

func (s BlobRoutes) removeBlob(ctx context.Context, in *removeBlobInput) (*struct{}, error) {
	sum, err := checkSum(in.Sum)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.sum", err))
	}
	if err := s.Care.RemoveBlob(ctx, sum, in.Force); err != nil {
		return nil, web.Problem(err)
	}
	in.Note(s.Log, "blob removed", "sha256", sum, "force", in.Force)
	return nil, nil
}
