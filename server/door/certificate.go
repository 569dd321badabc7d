package door

import (
	"fmt"
	"net/http"
	"time"

	"muster/access"
	"muster/server/web"
)

// certified returns the caller whose certificate TLS has verified; sent reports whether there is
// one.
func certified(r *http.Request, now time.Time) (who web.Caller, sent bool, err error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return who, false, nil
	}
	cert := r.TLS.VerifiedChains[0][0]
	// A connection may live longer than its certificate.
	if now.After(cert.NotAfter) {
		return who, true, unauthorized("expired_certificate", fmt.Sprintf("this certificate ended at "+
			"%s: connect with a new one", cert.NotAfter.UTC().Format(time.RFC3339)))
	}
	name, err := access.OfCertificate(cert)
	if err != nil {
		return who, true, unauthorized("nameless_certificate", err.Error())
	}
	return web.Caller{Name: name, Until: cert.NotAfter}, true, nil
}
