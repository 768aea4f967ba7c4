package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TargetLabel names the operator, and so the database, that serves a DatabaseUser. Its value is compared ignoring case.
const TargetLabel = "target"

// DatabaseUserSpec is the desired state of a DatabaseUser.
type DatabaseUserSpec struct {
	// User is the name to log in with. A MySQL server accepts at most 32 characters. Not every name is possible: if one is
	// refused, the condition Ready says why.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	User string `json:"user,omitempty"`

	// Password selects a key of a Secret in the same namespace. When the Secret changes, the password of the account is
	// changed; when the Secret is deleted, the account stays as it is.
	// +optional
	Password *corev1.SecretKeySelector `json:"password,omitempty"`

	// Hosts that the user may connect from: names or addresses, in which % matches any characters and _ any one character, or
	// IPv4 networks such as 10.1.0.0/255.255.0.0. Default: all.
	// +kubebuilder:default={"%"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9._%:-]+|[0-9.]+/[0-9.]+)$`
	// +listType=set
	// +optional
	Hosts []string `json:"hosts,omitempty"`

	// Grants are the privileges of the user. Privileges that others granted stay.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Grants []Grant `json:"grants,omitempty"`

	// Limits on the use of the server. Default: none.
	// +optional
	Limits Limits `json:"limits,omitzero"`

	// Require is what a connection needs besides the password: nothing, TLS, or TLS with a client certificate. Default: none.
	// +kubebuilder:validation:Enum=none;ssl;x509
	// +kubebuilder:default=none
	// +optional
	Require Requirement `json:"require,omitempty"`

	// DeletionPolicy is whether the account is dropped when the DatabaseUser is deleted. Default: Delete.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Adopt takes over an account that exists and was not created for this DatabaseUser: its password, limits and
	// requirement are changed, and it is dropped with the DatabaseUser. It also creates an account although somebody else has
	// accounts of the same user name for other hosts. In both cases, accounts that can do more than use databases, or that are
	// locked, are refused. Default: existing accounts are left alone, and their user names are not used.
	// +optional
	Adopt bool `json:"adopt,omitempty"`
}

// Grant is a list of privileges in a database, or in one of its tables.
//
// +kubebuilder:validation:XValidation:rule="!has(self.table) || !self.privileges.exists(p, p in ['CREATE TEMPORARY TABLES', 'LOCK TABLES', 'EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE', 'EVENT'])",message="CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE ROUTINE, ALTER ROUTINE and EVENT cannot be granted on a table"
// +kubebuilder:validation:XValidation:rule="!(self.database.lowerAscii() in ['mysql', 'information_schema', 'performance_schema', 'sys'])",message="this database belongs to the server"
type Grant struct {
	// Privileges to grant. ALL stands for all that are listed here; on a table, for those of them that a table has.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=19
	// +listType=set
	Privileges []Privilege `json:"privileges"`

	// Database in which they are granted. The name is literal, not a pattern. The database need not exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Database string `json:"database"`

	// Table on which they are granted. It must exist. Default: all tables of the database.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Table string `json:"table,omitempty"`
}

// Privilege is a privilege in a database. Neither GRANT OPTION nor privileges on the server as a whole are among them.
//
// +kubebuilder:validation:Enum=ALL;SELECT;INSERT;UPDATE;DELETE;CREATE;DROP;REFERENCES;INDEX;ALTER;CREATE TEMPORARY TABLES;LOCK TABLES;EXECUTE;CREATE VIEW;SHOW VIEW;CREATE ROUTINE;ALTER ROUTINE;EVENT;TRIGGER
type Privilege string

// Limits on the use of the server, for each host. Zero means no limit.
type Limits struct {
	// MaxUserConnections is the maximum number of concurrent connections.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	MaxUserConnections int32 `json:"maxUserConnections,omitempty"`

	// MaxConnectionsPerHour is the maximum number of connections opened in an hour.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	MaxConnectionsPerHour int32 `json:"maxConnectionsPerHour,omitempty"`

	// MaxQueriesPerHour is the maximum number of statements in an hour.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	MaxQueriesPerHour int32 `json:"maxQueriesPerHour,omitempty"`

	// MaxUpdatesPerHour is the maximum number of statements in an hour that change something.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	MaxUpdatesPerHour int32 `json:"maxUpdatesPerHour,omitempty"`
}

// Requirement is what a connection needs besides the password.
type Requirement string

// Requirements.
const (
	RequireNone Requirement = "none"
	RequireSSL  Requirement = "ssl"
	RequireX509 Requirement = "x509"
)

// DeletionPolicy is what to do with the account when its DatabaseUser is deleted.
type DeletionPolicy string

// Deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionRetain DeletionPolicy = "Retain"
)

// DatabaseUserStatus is the observed state of a DatabaseUser. User, hosts and target are written before an account is created:
// an account that is recorded here, and whose host is not pending, was created, or adopted, for this DatabaseUser.
type DatabaseUserStatus struct {
	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastHandledReconcileAt is the last value of the annotation opblocks.dev/requested-at that was handled.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// User is the user name of the accounts.
	// +optional
	User string `json:"user,omitempty"`

	// Hosts of the accounts, sorted, in lower case.
	// +listType=atomic
	// +optional
	Hosts []string `json:"hosts,omitempty"`

	// PendingHosts are the hosts whose account is about to be created or adopted. Until the creation is confirmed, an account of
	// this name may belong to somebody else. So the account of a pending host is changed or dropped only if the server shows that it was
	// created for this DatabaseUser.
	// +listType=atomic
	// +optional
	PendingHosts []string `json:"pendingHosts,omitempty"`

	// Grants that were applied, sorted, one for each database or table.
	// +listType=atomic
	// +optional
	Grants []AppliedGrant `json:"grants,omitempty"`

	// Target names the operator that created the accounts. Only this operator changes and drops them.
	// +optional
	Target string `json:"target,omitempty"`

	// PasswordVersion is the version of the Secret that the password is from, as UID/resourceVersion. It is empty until there is
	// an account that is not pending.
	// +optional
	PasswordVersion string `json:"passwordVersion,omitempty"`

	// Conditions: Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// AppliedGrant is a grant that was applied. A later version may know other privileges, so there is no enumeration of them.
type AppliedGrant struct {
	Database string `json:"database"`
	// +optional
	Table string `json:"table,omitempty"`
	// +listType=atomic
	Privileges []string `json:"privileges"`
}

// Condition is an observation.
type Condition struct {
	// Type of the condition, such as Ready.
	Type string `json:"type"`

	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// LastUpdateTime is when the reason or the message last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`

	// Reason in one word. It has no pattern: the article's operator wrote reasons with spaces.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// DatabaseUser is an account on a MariaDB or MySQL server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dbu
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name=User,type=string,JSONPath=.spec.user
// +kubebuilder:printcolumn:name=Target,type=string,JSONPath=.metadata.labels.target
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Message,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type DatabaseUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec DatabaseUserSpec `json:"spec,omitzero"`
	// +optional
	Status DatabaseUserStatus `json:"status,omitzero"`
}

// DatabaseUserList is a list of DatabaseUsers.
//
// +kubebuilder:object:root=true
type DatabaseUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DatabaseUser `json:"items"`
}
