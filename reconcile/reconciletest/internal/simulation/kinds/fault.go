// Package kinds has the kinds of faults that package reconciletest explores, and the kinds of findings that it reports.
package kinds

// Fault is a kind of fault: what goes wrong.
type Fault string

// The comment of each kind says what goes wrong, and where it is tried. A write is a request to the API server that may change something.
// An effect is a call of Process.Effect, and a query is a call of Process.Query. HTTP requests by Process.RoundTripper are effects or
// queries too, and so are calls of an API of package fakeapi. "Every object" means every object that the process has in its queue or has
// reconciled.
const (
	// CrashBefore: the process dies before it sends a write or has an effect.
	CrashBefore Fault = "crash before"
	// CrashAfter: the process dies after a write is stored or an effect has happened, and before it gets the answer.
	CrashAfter Fault = "crash after"
	// CrashDowntime: as CrashAfter, and the user's next action happens before the process starts again.
	CrashDowntime Fault = "crash with downtime after"
	// CrashUnseen: as CrashAfter, for a write of a kind that the process watches. The cache of the next process does not
	// show the write, nor anything later of that kind, until one pass of every object has run. This happens when a standby
	// replica takes over whose watch lags, or when an API server that lags answers a list.
	CrashUnseen Fault = "crash unseen after"
	// CrashDowntimeUnseen: as CrashUnseen, and the user's next action happens before the process starts again.
	CrashDowntimeUnseen Fault = "crash with downtime unseen after"
	// ConcurrentAction: the user's next action happens just before a write or an effect, in the middle of the pass.
	ConcurrentAction Fault = "concurrent action before"
	// Timeout: a write is stored, or an effect happens, and its answer is lost: the operator gets an error that wraps
	// [context.DeadlineExceeded].
	Timeout Fault = "timeout after"
	// TimeoutBefore: a write does not reach the API server, or an effect does not happen. The operator gets the same error as with Timeout,
	// and cannot know whether it was done.
	TimeoutBefore Fault = "timeout before"
	// Conflict: another writer adds an annotation, a label and, unless the object is being deleted, a finalizer to the
	// object just before an update, patch or apply. Before a write of the status it writes a condition too, if the kind's
	// conditions are of type metav1.Condition.
	Conflict Fault = "conflict at"
	// TooManyRequests: the API server, the peer of Process.RoundTripper, or an API of package fakeapi refuses a request, and
	// asks to retry after a second.
	TooManyRequests Fault = "too many requests at"
	// InternalError: the API server or an API of package fakeapi answers a request with an internal error (500), or the peer of
	// Process.RoundTripper answers that it is not available (503).
	InternalError Fault = "internal error at"
	// ConnectionRefused: a request to the API server, an effect or a query does not arrive.
	ConnectionRefused Fault = "connection refused at"
	// AlreadyExists: a creation is stored, its answer is lost on the way, and the operator gets the answer to its client's
	// second attempt. A creation with a generated name is refused and not stored, as if the name were taken.
	AlreadyExists Fault = "already exists at"
	// NotFound: another writer deletes an object that the operator created, just before the operator writes or deletes it.
	NotFound Fault = "not found at"
	// Stale: the cache does not show a change of an object, nor later ones of that kind, until one more pass of every
	// object has run, one object has had five, or a pass has waited for 10 seconds.
	Stale Fault = "stale after"
	// StaleLong: as Stale, until two more passes of every object have run.
	StaleLong Fault = "stale for long after"
	// StaleObjects: as Stale, for a kind that the process watches or reads in the cache both as whole objects and as
	// metadata. The cache has an informer for each, and the informer of metadata shows the change.
	StaleObjects Fault = "stale objects after"
	// StaleMetadata: like StaleObjects with the two informers exchanged: the informer of whole objects shows the change, and the
	// informer of metadata does not.
	StaleMetadata Fault = "stale metadata after"
	// MissedEvent: the watch breaks at a change of an object. When the operator has nothing left to do but wait, or one
	// object has had five passes, the kind is listed again. All changes of an object in between arrive as one event.
	MissedEvent Fault = "missed event of"
	// MissedDeletion: the watch breaks at the deletion of an object. The user's next action creates the object again, before the kind is
	// listed again. So the two changes arrive as one update, to an object with another UID.
	MissedDeletion Fault = "missed deletion of"
	// TimeTravel: when the operator has nothing left to do but wait after a change of an object, another process takes over.
	// Its cache shows that kind as it was before the change, until one pass of every object has run.
	TimeTravel Fault = "time travel to before"
	// LeaderChange: another replica becomes the leader before a write or an effect of a pass, and works until it is quiet.
	// Only then does the old leader continue: it finishes its pass, and then its process ends.
	LeaderChange Fault = "leader change before"
	// ForeignFinalizer: the user deletes an object that also has the finalizer of another controller. That controller removes its finalizer
	// only when the operator is quiet. If the operator has removed its own finalizer before, and its passes over the object fail while the
	// object still exists, that is a finding.
	ForeignFinalizer Fault = "foreign finalizer at"
	// Reversed: if a set of children sends several requests at once, the last of them is done first. Faults at these requests are tried in
	// the order in which the children are declared.
	Reversed Fault = "reversed order of"
	// StaleAnswer: an API of package fakeapi answers a query with the state before the last write. The next query gets the present state.
	StaleAnswer Fault = "stale answer to"
	// Outage: an API of package fakeapi answers this call, and all calls within the next minute of virtual time, with 503. They have no
	// effect.
	Outage Fault = "outage from"
	// WebhookUnreachable: no webhook can be reached for a write. If a webhook's failure policy is Fail, the API server refuses the write
	// with an internal error. If it is Ignore, the webhook is skipped.
	WebhookUnreachable Fault = "webhook unreachable at"
	// WebhookPassedOver: no webhook can be reached for a write of the user, and a webhook whose failure policy is Ignore is skipped. So the
	// object may lack defaults, or be invalid.
	WebhookPassedOver Fault = "webhook passed over at" //nolint:gosec // the words of a fault, and not a credential
	// ConversionUnreachable: the webhook that converts between versions cannot be reached for a request in another version than the storage
	// version. The API server refuses the request with status 500.
	ConversionUnreachable Fault = "conversion unreachable at"
)

// Rules has each kind of fault, in the order in which the faults are tried. It says where each kind is tried, and what the trace says about
// it. What a fault does is in package operator (fault.go), and in package run (held.go) for a deletion by the user.
var Rules = []Rule{
	{Kind: CrashBefore, Where: AtWrite, Words: "the process dies before the request is sent"},
	{Kind: CrashAfter, Where: AtWrite, Words: "it is done, and the process dies before it gets the answer"},
	{Kind: CrashDowntime, Where: AtWrite, NeedsNextAction: true, Words: "it is done, and the process dies; it starts again after the user's next action"},
	{Kind: CrashUnseen, Where: AtAPIWrite, NeedsWatch: true, ShowsPast: true, Words: "it is done, and the process dies; the cache of the next one does not show it for one pass"},
	{Kind: CrashDowntimeUnseen, Where: AtAPIWrite, NeedsNextAction: true, NeedsWatch: true, ShowsPast: true, Words: "it is done, and the process dies; it starts again after the user's next action, and its cache does not show it for one pass"},
	{Kind: ConcurrentAction, Where: AtWrite, NeedsNextAction: true, Words: "the user's next action comes just before"},
	{Kind: Timeout, Where: AtWrite, Words: "it is done, and the answer is lost"},
	{Kind: TimeoutBefore, Where: AtWrite, Words: "it does not reach the server, and its time is over"},
	{Kind: Conflict, Where: AtModification, Words: "another writer wrote the object just before"},
	{Kind: TooManyRequests, Where: AtAnswered, Words: "the server refuses it"},
	{Kind: InternalError, Where: AtAnswered, Words: "the server refuses it"},
	{Kind: ConnectionRefused, Where: AtRequest, Words: "it does not reach the server"},
	{Kind: AlreadyExists, Where: AtCreation, Words: "it is done, and the answer is that to the client's second attempt"},
	{Kind: NotFound, Where: AtOwnedWrite, Words: "another writer deleted the object just before"},
	{Kind: LeaderChange, Where: AtWrite, Words: "another replica becomes the leader before the request is sent"},
	{Kind: Stale, Where: AtChange, Words: "the cache does not show it for one pass"},
	{Kind: StaleLong, Where: AtChange, Words: "the cache does not show it for two passes"},
	{Kind: StaleObjects, Where: AtChange, NeedsTwo: true, Words: "the cache of whole objects does not show it for one pass, and that of metadata does"},
	{Kind: StaleMetadata, Where: AtChange, NeedsTwo: true, Words: "the cache of metadata does not show it for one pass, and that of whole objects does"},
	{Kind: MissedEvent, Where: AtChange, Words: "the cache does not show it until the operator is quiet"},
	{Kind: MissedDeletion, Where: AtChange, NeedsRecreation: true, Words: "the cache does not show it until the user's next action is done"},
	{Kind: TimeTravel, Where: AtChange, ShowsPast: true, Words: "the next cache shows it as it was before, for one pass"},
	{Kind: ForeignFinalizer, Where: AtDeletion, Words: "it is removed only when the operator is quiet"},
	{Kind: Reversed, Where: AtBatch, Words: "the last of them is done first"},
	{Kind: StaleAnswer, Where: AtStaleRead, Words: "the answer shows what was there before the last write"},
	{Kind: WebhookUnreachable, Where: AtReviewed, Words: "the webhooks of the request cannot be reached"},
	{Kind: WebhookPassedOver, Where: AtUserWrite, Words: "the webhooks of the request cannot be reached"},
	{Kind: ConversionUnreachable, Where: AtConverted, Words: "the webhook that converts the object cannot be reached"},
	{Kind: Outage, Where: AtAPICall, Words: "from now on no call is answered, for a while"},
}
