BEGIN TRANSACTION;
CREATE TABLE sfumato_answers (
	"key" TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
)
 STRICT

;
INSERT INTO "sfumato_answers" VALUES('salt of keys','7cc19d5bd640bd8239b3a0452462a385');
INSERT INTO "sfumato_answers" VALUES('f7fbda71c033d268a1d0e61a55f837a1a21c1631eb73a86eb6fc4ac95bd5fd30 paid by ada','{"entry": {"number": 11, "previous": "5bb486e66060c7b1a027878eda2539d922cc47dc9309871484f935a9b7830ff8", "hash": "433ede8a5fb01dc9f9d2877355f0e5838b82c2c70b401c21dd26ea809a43221c"}, "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}, "plans": [{"rows_from": {"node": "scan", "rule": "R1", "copies": 1, "table": "patients", "unit_column": null, "over": []}, "bounding": "row", "rows": 1, "groups": 1, "draws": [{"rule": "M1", "over": "groups", "reach": 1, "parts": 1, "measures": {"once": false, "kind": "count", "rule": "S1", "step": "1"}, "noise": {"scale": "2", "grid": "1", "mechanism": "laplace", "drawn": "2"}, "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}, "reservation": 0}], "reserved": [{"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}], "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}}]}');
INSERT INTO "sfumato_answers" VALUES('f7fbda71c033d268a1d0e61a55f837a1a21c1631eb73a86eb6fc4ac95bd5fd30 paid by ','{"entry": {"number": 11, "previous": "5bb486e66060c7b1a027878eda2539d922cc47dc9309871484f935a9b7830ff8", "hash": "433ede8a5fb01dc9f9d2877355f0e5838b82c2c70b401c21dd26ea809a43221c"}, "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}, "plans": [{"rows_from": {"node": "scan", "rule": "R1", "copies": 1, "table": "patients", "unit_column": null, "over": []}, "bounding": "row", "rows": 1, "groups": 1, "draws": [{"rule": "M1", "over": "groups", "reach": 1, "parts": 1, "measures": {"once": false, "kind": "count", "rule": "S1", "step": "1"}, "noise": {"scale": "2", "grid": "1", "mechanism": "laplace", "drawn": "2"}, "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}, "reservation": 0}], "reserved": [{"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}], "loss": {"measure": "epsilon", "size": "1/2", "delta": "0", "rho": "1/8", "squared_mu": "117641165837654598315449/302231454903657293676544", "curve_delta": "0"}}]}');
INSERT INTO "sfumato_answers" VALUES('f7fbda71c033d268a1d0e61a55f837a1a21c1631eb73a86eb6fc4ac95bd5fd30','{"keys": [[]], "values": {"0": [400]}}');
CREATE TABLE sfumato_audit (
	number INTEGER NOT NULL, 
	dataset TEXT NOT NULL, 
	rules TEXT NOT NULL, 
	question TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	fakes TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (hash)
);
CREATE TABLE sfumato_ledger (
	number INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	kind TEXT NOT NULL CHECK (kind IN ('cap', 'spend', 'month', 'year', 'question', 'moved', 'event', 'release')), 
	dataset TEXT NOT NULL, 
	analyst TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	measure TEXT NOT NULL, 
	size TEXT NOT NULL, 
	delta TEXT NOT NULL, 
	bounds TEXT NOT NULL, 
	about TEXT NOT NULL, 
	totals TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (hash)
)
 STRICT

;
INSERT INTO "sfumato_ledger" VALUES(1,'2026-11-19T14:59:21.810+00:00','event','','','','epsilon','0','0','','{"event": "server", "name": "the sfumato server ebca7829"}','{}','0000000000000000000000000000000000000000000000000000000000000000','a214786647e9f6deca3866c3e333c9a26cfb0361d75f71d1a859e502e64c8675');
INSERT INTO "sfumato_ledger" VALUES(2,'2026-11-19T14:59:21.930+00:00','event','hospital','','','epsilon','0','0','','{"event": "register data set", "by": "owner", "version": 1}','{}','a214786647e9f6deca3866c3e333c9a26cfb0361d75f71d1a859e502e64c8675','099ed8c7227cdb4c29b15c7511ca1eb09424177b4fa30a07995a26a6d579fdd3');
INSERT INTO "sfumato_ledger" VALUES(3,'2026-11-19T14:59:21.931+00:00','cap','hospital','','','epsilon','10','0','','owner: trial','{"composition":"all","reserved":"0"}','099ed8c7227cdb4c29b15c7511ca1eb09424177b4fa30a07995a26a6d579fdd3','88ec7fcf88af2bc3d05f5f207e22df0d3143cddd8f31513ff8cd97b4fd93bb7e');
INSERT INTO "sfumato_ledger" VALUES(4,'2026-11-19T14:59:21.932+00:00','event','','','','epsilon','0','0','','{"event": "add user", "by": "test", "user": "ada", "roles": ["analyst"]}','{}','88ec7fcf88af2bc3d05f5f207e22df0d3143cddd8f31513ff8cd97b4fd93bb7e','df17dc3fa5f86713df7f4cec24a4db44696944354f5dce6a7d002204dcdeefb6');
INSERT INTO "sfumato_ledger" VALUES(5,'2026-11-19T14:59:21.933+00:00','event','hospital','','','epsilon','0','0','','{"event": "grant", "by": "test", "holder": "ada"}','{}','df17dc3fa5f86713df7f4cec24a4db44696944354f5dce6a7d002204dcdeefb6','a07c10ec4d51b76cd7a6f5d37012e2c12f1c4a29bc4edc3aad5970be022f1276');
INSERT INTO "sfumato_ledger" VALUES(6,'2026-11-19T14:59:21.934+00:00','cap','hospital','ada','','epsilon','1','0','','test: trial','{"composition":"all","reserved":"0"}','a07c10ec4d51b76cd7a6f5d37012e2c12f1c4a29bc4edc3aad5970be022f1276','8df9949481febf6418db34c124d17017ee5908f09a7af5a57397eda24b4bd1f3');
INSERT INTO "sfumato_ledger" VALUES(7,'2026-11-19T14:59:21.935+00:00','event','','','','epsilon','0','0','','{"event": "add group", "by": "test", "group": "icu"}','{}','8df9949481febf6418db34c124d17017ee5908f09a7af5a57397eda24b4bd1f3','634e84187e23eed905ef9da6d24bb9725c70e0804e28de5dc877bf16838372f2');
INSERT INTO "sfumato_ledger" VALUES(8,'2026-11-19T14:59:21.936+00:00','event','','','','epsilon','0','0','','{"event": "join group", "by": "test", "user": "ada", "group": "icu"}','{}','634e84187e23eed905ef9da6d24bb9725c70e0804e28de5dc877bf16838372f2','6b3877ce79931a10a67fda98474a74db15625cd98b2fe76bcdd5e23972bc6389');
INSERT INTO "sfumato_ledger" VALUES(9,'2026-11-19T14:59:21.937+00:00','cap','hospital','@icu','','epsilon','2','0','','test: trial','{"composition":"all","reserved":"0"}','6b3877ce79931a10a67fda98474a74db15625cd98b2fe76bcdd5e23972bc6389','9005effe02e3c6f2ec5817967da394074bd0a1713804fc2753c8ae25a304b1ab');
INSERT INTO "sfumato_ledger" VALUES(10,'2026-11-19T14:59:21.938+00:00','event','','','','epsilon','0','0','','{"event": "add user", "by": "test", "user": "otto", "roles": ["owner"]}','{}','9005effe02e3c6f2ec5817967da394074bd0a1713804fc2753c8ae25a304b1ab','5bb486e66060c7b1a027878eda2539d922cc47dc9309871484f935a9b7830ff8');
INSERT INTO "sfumato_ledger" VALUES(11,'2026-11-19T14:59:21.966+00:00','spend','hospital','ada','row','epsilon','1/2','0','','f7fbda71c033d268a1d0e61a55f837a1a21c1631eb73a86eb6fc4ac95bd5fd30','{"accounts":[["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"],["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"],["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"]],"groups":{"@icu":[["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"],["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"]]},"charge":["1/2","0","1/8","117641165837654598315449/302231454903657293676544","0"],"plan":"5427a5188bb8ddc3f05613ce24fb931601a445cd96f82a8690a3069f6815ded0"}','5bb486e66060c7b1a027878eda2539d922cc47dc9309871484f935a9b7830ff8','433ede8a5fb01dc9f9d2877355f0e5838b82c2c70b401c21dd26ea809a43221c');
CREATE TABLE sfumato_ledger_failures (
	number INTEGER NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE sfumato_ledger_index (
	name TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	PRIMARY KEY (name, number)
);
INSERT INTO "sfumato_ledger_index" VALUES('@icu',11);
CREATE TABLE sfumato_policy_tables (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL, place TEXT NOT NULL, policy TEXT NOT NULL, content TEXT NOT NULL, people TEXT NOT NULL, secret TEXT NOT NULL, asked INTEGER NOT NULL);
CREATE TABLE sfumato_queries (
	number INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "sfumato_queries" VALUES(11,'SELECT COUNT(*) AS n FROM patients');
CREATE TABLE sfumato_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT sfumato_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "sfumato_schema" VALUES('0001');
CREATE TABLE sfumato_server_approvals (
	request TEXT NOT NULL, 
	by_name TEXT NOT NULL, 
	at TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (request, by_name)
);
CREATE TABLE sfumato_server_dataset_versions (
	dataset TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	metadata TEXT DEFAULT '' NOT NULL, 
	base TEXT DEFAULT '' NOT NULL, 
	by_name TEXT DEFAULT '' NOT NULL, 
	at TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (dataset, number)
);
INSERT INTO "sfumato_server_dataset_versions" VALUES('hospital',1,'sfumato: 1
dataset: hospital
ledger: unused.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, west]}}
      age: {kind: integer, domain: {low: 0, high: 99}}
','FOLDER/data','owner','2026-11-19T14:59:21.929+00:00');
CREATE TABLE sfumato_server_datasets (
	name TEXT NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	owner TEXT DEFAULT '' NOT NULL, 
	version INTEGER DEFAULT '0' NOT NULL, 
	created TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "sfumato_server_datasets" VALUES('hospital','active','owner',1,'2026-11-19T14:59:21.929+00:00');
CREATE TABLE sfumato_server_grants (
	dataset TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	by_name TEXT DEFAULT '' NOT NULL, 
	at TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (dataset, holder)
);
INSERT INTO "sfumato_server_grants" VALUES('hospital','ada','test','2026-11-19T14:59:21.933+00:00');
CREATE TABLE sfumato_server_groups (
	name TEXT NOT NULL, 
	created TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "sfumato_server_groups" VALUES('icu','2026-11-19T14:59:21.935+00:00');
CREATE TABLE sfumato_server_links (
	hash TEXT NOT NULL, 
	user_name TEXT DEFAULT '' NOT NULL, 
	expires TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE sfumato_server_lockouts (
	hash TEXT NOT NULL, 
	failures INTEGER DEFAULT '0' NOT NULL, 
	until TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE sfumato_server_members (
	group_name TEXT NOT NULL, 
	user_name TEXT NOT NULL, 
	PRIMARY KEY (group_name, user_name)
);
INSERT INTO "sfumato_server_members" VALUES('icu','ada');
CREATE TABLE sfumato_server_questions (
	id TEXT NOT NULL, 
	analyst TEXT DEFAULT '' NOT NULL, 
	dataset TEXT DEFAULT '' NOT NULL, 
	sql TEXT DEFAULT '' NOT NULL, 
	options TEXT DEFAULT '' NOT NULL, 
	request TEXT DEFAULT '' NOT NULL, 
	idempotency_key TEXT, 
	state TEXT DEFAULT '' NOT NULL, 
	error TEXT DEFAULT '' NOT NULL, 
	entries TEXT DEFAULT '' NOT NULL, 
	keys TEXT DEFAULT '' NOT NULL, 
	at TEXT DEFAULT '' NOT NULL, 
	finished TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sfumato_server_questions" VALUES('fe52a94a01344101200f8d08','ada','hospital','SELECT COUNT(*) AS n FROM patients','{"epsilon": "0.5"}','4efc760cd2819bd24bf0b6dbbad0667205cc0de01d04286276e04edbafe191a0',NULL,'done','','[11]','','2026-11-19T14:59:21.940+00:00','2026-11-19T14:59:21.985+00:00');
CREATE TABLE sfumato_server_requests (
	id TEXT NOT NULL, 
	by_name TEXT DEFAULT '' NOT NULL, 
	dataset TEXT DEFAULT '' NOT NULL, 
	holder TEXT DEFAULT '' NOT NULL, 
	period TEXT DEFAULT '' NOT NULL, 
	measure TEXT DEFAULT '' NOT NULL, 
	size TEXT DEFAULT '' NOT NULL, 
	delta TEXT DEFAULT '' NOT NULL, 
	why TEXT DEFAULT '' NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	at TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE sfumato_server_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT sfumato_server_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "sfumato_server_schema" VALUES('0001');
CREATE TABLE sfumato_server_sessions (
	hash TEXT NOT NULL, 
	user_name TEXT DEFAULT '' NOT NULL, 
	csrf TEXT DEFAULT '' NOT NULL, 
	created TEXT DEFAULT '' NOT NULL, 
	expires TEXT DEFAULT '' NOT NULL, 
	by_link INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE sfumato_server_settings (
	name TEXT NOT NULL, 
	value TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "sfumato_server_settings" VALUES('secret','af87b08b8a3afc9657a8ebf1327e26ffe9d88be15fd72257db417eb6012026c8');
CREATE TABLE sfumato_server_shared_refusals (
	analyst TEXT NOT NULL, 
	dataset TEXT NOT NULL, 
	measure TEXT NOT NULL, 
	caps TEXT DEFAULT '' NOT NULL, 
	size TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (analyst, dataset, measure)
);
CREATE TABLE sfumato_server_tokens (
	id TEXT NOT NULL, 
	user_name TEXT DEFAULT '' NOT NULL, 
	hash TEXT DEFAULT '' NOT NULL, 
	stored_key TEXT DEFAULT '' NOT NULL, 
	server_key TEXT DEFAULT '' NOT NULL, 
	scopes TEXT DEFAULT '' NOT NULL, 
	label TEXT DEFAULT '' NOT NULL, 
	created TEXT DEFAULT '' NOT NULL, 
	expires TEXT DEFAULT '' NOT NULL, 
	last_used TEXT DEFAULT '' NOT NULL, 
	revoked TEXT DEFAULT '' NOT NULL, 
	made_by TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sfumato_server_tokens" VALUES('c97326dd5291','ada','9887228e0393cf48c66a2492ff13a7bedb38be15971fc25636d70a85e161269c','nofnBw1jTEp85uCA7bmrMU3kxJxz98ao9Z83XDiwR2A=','lCo3dHnhqo/w32lQtqfypOujUlfU/co5QnsEnkmTrFg=','ask,manage,read','','2026-11-19T14:59:21.939+00:00','2026-11-20T14:59:21.938+00:00','','','');
CREATE TABLE sfumato_server_users (
	name TEXT NOT NULL, 
	roles TEXT DEFAULT '' NOT NULL, 
	password TEXT DEFAULT '' NOT NULL, 
	salt TEXT DEFAULT '' NOT NULL, 
	active INTEGER DEFAULT '0' NOT NULL, 
	subject TEXT DEFAULT '' NOT NULL, 
	created TEXT DEFAULT '' NOT NULL, 
	reset_at TEXT DEFAULT '' NOT NULL, 
	reset_by TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "sfumato_server_users" VALUES('ada','analyst','','2af03572599e8124e071e70455a90460',1,'','2026-11-19T14:59:21.932+00:00','','');
INSERT INTO "sfumato_server_users" VALUES('otto','owner','','05aafed7d5282b28e7bf04c08ea4c609',1,'','2026-11-19T14:59:21.938+00:00','','');
CREATE INDEX sfumato_ledger_account ON sfumato_ledger (kind, dataset, analyst, number);
CREATE INDEX sfumato_ledger_dataset ON sfumato_ledger (kind, dataset, number);
CREATE INDEX sfumato_ledger_analyst ON sfumato_ledger (kind, analyst, number);
CREATE INDEX sfumato_ledger_about ON sfumato_ledger (about, analyst);
CREATE TRIGGER sfumato_ledger_keep BEFORE UPDATE ON sfumato_ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER sfumato_ledger_stay BEFORE DELETE ON sfumato_ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER sfumato_audit_keep BEFORE UPDATE ON sfumato_audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER sfumato_audit_stay BEFORE DELETE ON sfumato_audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE UNIQUE INDEX sfumato_server_token_hash ON sfumato_server_tokens (hash);
CREATE INDEX sfumato_server_token_user ON sfumato_server_tokens (user_name);
CREATE INDEX sfumato_server_member ON sfumato_server_members (user_name);
CREATE INDEX sfumato_server_question_analyst ON sfumato_server_questions (analyst, at);
CREATE UNIQUE INDEX sfumato_server_question_key ON sfumato_server_questions (analyst, idempotency_key);
COMMIT;
