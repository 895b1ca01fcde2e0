// Package eds resolves the endpoints of a channel through an xDS management server:
//
//	eds://server:port[,server:port…]/cluster[?failoverTimeout=5s&…]
//
// The source requests the ClusterLoadAssignment of that cluster over Envoy's v3 aggregated
// discovery service (ADS), in its state-of-the-world variant. Localities, priorities, weights and
// drops become a tree of policies, described in docs/adr/0004-the-tree-never-changes-shape.md.
// The channel's authority is the name of the cluster, unless the target or an option sets
// another. docs/options.md lists the parameters that every target accepts.
//
// # The stream
//
// All channels of a process that use one server with the same credentials share one stream to it
// and one copy of the resources that it sent. The stream is opened with the first channel and
// closed with the last. It keeps its subscriptions to the clusters of closed channels, up to 100
// clusters and 16 MiB. When it exceeds these limits, the stream is renewed.
//
// A response with an invalid resource (gRFC A27) is rejected, with the reason. The valid resources
// of the response are used nevertheless. While the stream is down, or responses are rejected, calls
// use the last good endpoints. If there are none, calls fail with the reason: the server cannot be
// reached, the resource was rejected, or the resource did not arrive within 15 s.
//
// A lost stream is reopened with gRPC's backoff, from 1 s to 120 s. A keepalive ping every 5
// minutes, with a timeout of 20 s, detects a server that disappeared without closing the
// connection. A server that sends the header "understudy-ping: 30s", as understudy serve does, is
// pinged every 30 s. To change the interval, the stream is renewed once, 1 to 5 minutes after it
// was opened. Other servers are checked with a second stream when endpoints fail and the first
// stream has received nothing for 30 s. The second stream is opened within 10 s, at most once in 5
// minutes. It replaces the first stream if it receives a response within 15 s.
//
// A response larger than 64 MiB is not read.
//
// # Clusters
//
// With cds=true in the target, the source first requests the Cluster of that name.
// The clusters of an aggregate become priorities of the channel, in order (gRFC A37). A
// LOGICAL_DNS cluster is resolved through DNS. An EDS cluster names the ClusterLoadAssignment to
// request. docs/xds.md lists the fields that are used. A cluster that cannot be used becomes a
// priority without endpoints and does not affect the others.
//
// # Several servers
//
// Servers are used in the given order, as in gRFC A71. The next server is tried when the current
// server cannot be reached and the cluster is missing. A server counts as unreachable when a stream
// ends without a response or receives nothing for 15 s. If a server has responded before, but sends
// nothing for 15 s after a request for a cluster, it counts as unreachable only for the channels
// that need that cluster. A channel that has endpoints keeps them while their server is down,
// unless fallbackOnReachabilityOnly=true in the target selects the rule of gRFC A95.
//
// An unreachable server is retried, and is used as soon as it has sent the cluster. The channel
// then stops using the servers that follow it in the list. A channel uses the resources of one
// server and never mixes the resources of two servers. Each channel decides separately, and the log
// names both servers.
//
// A target cannot list several IPv6 addresses. Use a bootstrap for that.
//
// # Credentials
//
// The credentials of the connection to a server are the first of the following that apply: the
// credentials of WithTransportCredentials or WithInsecure; those of the xDS bootstrap, if it lists
// the server; no encryption, if the server is on the loopback interface; TLS with the system's root
// certificates.
//
// # The bootstrap
//
// The environment variable GRPC_XDS_BOOTSTRAP names a file. If it is not set,
// GRPC_XDS_BOOTSTRAP_CONFIG holds the content. The format is the JSON of gRFC A27. The bootstrap's
// node is sent to every server. Its servers are used, in order, by a target without a server
// (eds:///cluster). Their credentials are also used by a target that names the same host and port.
// The supported channel_creds are "insecure" and "tls", and the first supported entry is used. The
// files of "tls" (ca_certificate_file, certificate_file and private_key_file) are read again for
// each connection. Other fields are ignored.
//
// A bootstrap file that cannot be read, or is invalid, is read again with gRPC's backoff. Until it is
// valid, calls use the last good endpoints or fail with an error that names the file.
package eds
