package traces

import (
	"mime"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	res "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"muster/jobs/trace"
	"muster/server/spans"
)

// contentType is that of OTLP in the binary form, which every collector takes.
const contentType = "application/x-protobuf"

// A resource names the sender: the version and the name of this server.
type resource struct{ version, name string }

// encode returns the request for spans. The message TracesData has the same form as the request of
// the service, whose package would bring gRPC along.
func encode(list []spans.Span, from resource) ([]byte, error) {
	d := &otlp.TracesData{}
	if len(list) > 0 {
		own := make([]*otlp.Span, len(list))
		for i, s := range list {
			own[i] = spanOf(s)
		}
		about := []*common.KeyValue{attribute("service.name", "muster"),
			attribute("service.version", from.version)}
		if from.name != "" {
			about = append(about, attribute("service.instance.id", from.name))
		}
		d.ResourceSpans = []*otlp.ResourceSpans{{Resource: &res.Resource{Attributes: about},
			ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "muster",
				Version: from.version}, Spans: own}}}}
	}
	return proto.Marshal(d)
}

func spanOf(s spans.Span) *otlp.Span {
	out := &otlp.Span{TraceId: s.Trace[:], SpanId: s.ID[:], Name: s.Name,
		Kind: otlp.Span_SpanKind(s.Kind), StartTimeUnixNano: uint64(s.Start.UnixNano()),
		EndTimeUnixNano: uint64(s.End.UnixNano()),
		Status:          &otlp.Status{Code: otlp.Status_StatusCode(s.Status), Message: s.Message}}
	if s.Parent != (trace.SpanID{}) {
		out.ParentSpanId = s.Parent[:]
	}
	for _, a := range s.Attributes {
		out.Attributes = append(out.Attributes, attribute(a.Key, a.Value))
	}
	if s.Link != nil {
		out.Links = []*otlp.Span_Link{{TraceId: s.Link.Trace[:], SpanId: s.Link.Span[:]}}
	}
	return out
}

func attribute(key string, value any) *common.KeyValue {
	out := &common.KeyValue{Key: key, Value: &common.AnyValue{}}
	switch v := value.(type) {
	case string:
		out.Value.Value = &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(v, "\uFFFD")}
	case int64:
		out.Value.Value = &common.AnyValue_IntValue{IntValue: v}
	case float64:
		out.Value.Value = &common.AnyValue_DoubleValue{DoubleValue: v}
	}
	return out
}

// The fields of an answer: ExportTraceServiceResponse has in field 1 a partial success, which has
// the number of refused spans and words about them.
const (
	fieldPartial  = 1
	fieldRejected = 1
	fieldWords    = 2
)

// partly returns how many spans a collector refused of a request that it took, with its words. An
// answer in another form says nothing.
func partly(kind string, answer []byte) (rejected int64, words string) {
	if media, _, err := mime.ParseMediaType(kind); err != nil || media != contentType {
		return 0, ""
	}
	each(answer, func(no protowire.Number, _ uint64, inside []byte) {
		if no != fieldPartial {
			return
		}
		each(inside, func(no protowire.Number, n uint64, text []byte) {
			switch no {
			case fieldRejected:
				rejected = int64(n)
			case fieldWords:
				words = string(text)
			}
		})
	})
	return max(rejected, 0), words
}

// each calls f for each field of a message, until one cannot be read.
func each(b []byte, f func(no protowire.Number, n uint64, text []byte)) {
	for len(b) > 0 {
		no, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		var n uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(no, kind, b)
		}
		if size < 0 {
			return
		}
		f(no, n, text)
		b = b[size:]
	}
}
