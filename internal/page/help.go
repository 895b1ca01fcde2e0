package page

import (
	"bytes"
	"net/http"
)

// hint tells what to look at first if a page shows Reason.
type hint struct{ Reason, Look string }

// hints repeats the table in docs/log.md: the page must help offline, too.
var hints = []hint{
	{"connection refused by …", "whether the process runs and listens on this address, and whether a deployment has just stopped it"},
	{"did not connect within …, i/o timeout", "the network: a firewall, a security group, a wrong route, a machine that is down"},
	{"… accepts connections and does not answer", "whether the process hangs, or something else listens there, such as a proxy or a server that expects TLS"},
	{"… does not answer the TLS handshake", "whether the port uses TLS, and whether the process hangs"},
	{"x509: certificate is valid for …, not …", "the name in the certificate, and authority= in the target (certificates)"},
	{"the server wants a client certificate", "the client's certificate (mTLS), which is missing or from another CA"},
	{"no such host: the name may not exist", "the spelling of the name, and the DNS zone"},
	{"the health check says NOT_SERVING", "the log of the backend, which reported this itself"},
	{"its calls fail with UNAVAILABLE", "the services that the backends need, and any proxy in front of them"},
	{"… fail with DEADLINE_EXCEEDED", "whether the backends hang or are overloaded, or the deadline is too short"},
	{"… fail with INTERNAL or UNKNOWN", "the last deployment, and the backend's log"},
	{"takes … of its calls: full or slow", "the load and the capacity of the priority"},
	{"takes only probes: hanging or broken", "the log of the priority's backends: they do not answer, or answer with errors"},
	{"has no good answers", "the backends' logs: calls fail or expire at every priority"},
	{"an update has given it endpoints, which connect", "nothing: the list was empty, or all were draining"},
	{"takes …: returning", "nothing: its connections came back, and its share grows"},
	{"has lost its connections", "whether the backends were restarted; the client reconnects by itself"},
	{"an update has given … other endpoints, which connect, an update has put …", "nothing: the source's answer has changed"},
	{"no endpoints: …", "whether the source's list is meant to be empty"},
	{"no answer yet: …", "what the source is waiting for, such as name servers or the management server"},
	{"(a mistake to correct: waiting will not help)", "the target and its source's configuration, which name something that a server does not know"},
	{"is no longer configured", "nothing is wrong: an update removed the priority"},
}

func serveHelp(w http.ResponseWriter) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, "help", hints); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "text/html; charset=utf-8", page.Bytes())
}
