package debugpage

import (
	"bytes"
	"net/http"
)

// hint tells the user where to look first when the page shows a certain reason.
type hint struct{ Reason, Look string }

// hints is the table of docs/log.md. The page contains it, so that it can be read offline.
var hints = []hint{
	{"connection refused by …", "the process: does it run, and does it listen on this port and address? Has a deployment just stopped it?"},
	{"did not connect within …, i/o timeout", "the network: a firewall, a security group, a route, a machine that is gone"},
	{"… accepts connections and does not answer", "the process hangs, or something else listens there: a proxy, or a port that speaks TLS where the client does not"},
	{"… does not answer the TLS handshake", "a port that does not speak TLS, or a process that hangs"},
	{"x509: certificate is valid for …, not …", "the name on the certificate, and authority= of the target (certificates)"},
	{"the server wants a client certificate", "the client's certificate (mTLS): none was given, or one of another CA"},
	{"no such host: the name may not exist", "the spelling of the name, and the zone in DNS"},
	{"the health check says NOT_SERVING", "the backend's own log, because the backend reported this"},
	{"calls to all of its endpoints fail with UNAVAILABLE", "what the backends depend on; a proxy in front of them"},
	{"… fail with DEADLINE_EXCEEDED", "a backend that hangs or is overloaded; a deadline that is too short"},
	{"… fail with INTERNAL or UNKNOWN", "the last deployment, and the backend's log"},
	{"… of its weight is READY, want …", "the endpoints that are down: the page lists them first"},
	{"has lost its connections", "whether the backends were restarted; the client connects again by itself"},
	{"no endpoints: …", "the source: is its list empty?"},
	{"no answer yet: …", "what the source waits for: name servers, the management server"},
	{"(a mistake to correct: waiting will not help)", "the target and the configuration of its source: a server does not know something that they name"},
	{"is not configured any more", "nothing is wrong: an update removed the priority"},
}

func serveHelp(w http.ResponseWriter) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "help", hints); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "text/html; charset=utf-8", page.Bytes())
}
