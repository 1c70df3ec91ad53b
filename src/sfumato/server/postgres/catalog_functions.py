"""Functions of ``pg_catalog`` as DuckDB macros over the catalog tables, and the built-in functions that may be called.

Everything here reads the public schema only. A function that is in neither list is refused: the engine behind the
catalogs has functions of its own that analysts have no business with. Aliases in macros begin with ``_``: DuckDB puts
the arguments of a call into the text of a macro, where an alias of the same name would capture them.
"""

from __future__ import annotations

MACROS = (
    # names of types and relations
    "format_type(o, m) AS (SELECT CASE WHEN _t.typelem <> 0 AND _t.typcategory = 'A' THEN "
    "long_type_name(_e.typname) || "
    "'[]' ELSE long_type_name(_t.typname) END FROM cat.pg_type _t LEFT JOIN cat.pg_type _e ON _e.oid = _t.typelem "
    "WHERE _t.oid = o)",
    "to_regtype(n) AS (SELECT min(_t.oid) FROM cat.pg_type _t WHERE _t.typname = n OR long_type_name(_t.typname) = n)",
    "to_regclass(n) AS (SELECT min(_c.oid) FROM cat.pg_class _c JOIN cat.pg_namespace _s ON _s.oid = _c.relnamespace "
    "WHERE replace(n, '\"', '') IN (_c.relname, _s.nspname || '.' || _c.relname, _c.oid::VARCHAR))",
    "to_regnamespace(n) AS (SELECT min(_s.oid) FROM cat.pg_namespace _s WHERE _s.nspname = n)",
    "regclass_name(o) AS coalesce((SELECT min(CASE WHEN _s.nspname IN ('public', 'pg_catalog') THEN _c.relname ELSE "
    "_s.nspname || '.' || _c.relname END) FROM cat.pg_class _c JOIN cat.pg_namespace _s ON _s.oid = _c.relnamespace "
    "WHERE _c.oid = o), CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)",
    "regnamespace_name(o) AS coalesce((SELECT min(_s.nspname) FROM cat.pg_namespace _s WHERE _s.oid = o), o::VARCHAR)",
    "regtype_name(o) AS CASE WHEN o = 0 THEN '-' ELSE coalesce(format_type(o, NULL), o::VARCHAR) END",
    "regproc_name(n) AS replace(n::VARCHAR, 'pg_catalog.', '')",
    # definitions and comments
    "pg_get_constraintdef(o) AS key_text(o), (o, p) AS key_text(o)",
    "pg_get_indexdef(o) AS index_text(o), (o, n, p) AS CASE WHEN n = 0 THEN index_text(o) ELSE (SELECT "
    "min(_a.attname) FROM cat.pg_index _i JOIN cat.pg_attribute _a ON _a.attrelid = _i.indrelid AND "
    "_a.attnum = _i.indkey[n] "
    "WHERE _i.indexrelid = o) END",
    "col_description(o, n) AS (SELECT min(_d.description) FROM cat.pg_description _d WHERE _d.objoid = o AND "
    "_d.objsubid = n)",
    "obj_description(o) AS comment_text(o), (o, c) AS comment_text(o)",
    "shobj_description(o, c) AS NULL::VARCHAR",
    "pg_get_expr(e, o) AS NULL::VARCHAR, (e, o, p) AS NULL::VARCHAR",
    "pg_get_viewdef(o) AS ''::VARCHAR, (o, p) AS ''::VARCHAR",
    "pg_get_ruledef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR",
    "pg_get_triggerdef(o) AS NULL::VARCHAR, (o, p) AS NULL::VARCHAR",
    "pg_get_partkeydef(o) AS NULL::VARCHAR",
    "pg_get_function_result(o) AS NULL::VARCHAR",
    "pg_get_function_arguments(o) AS NULL::VARCHAR",
    "pg_get_function_identity_arguments(o) AS NULL::VARCHAR",
    "pg_get_functiondef(o) AS NULL::VARCHAR",
    "pg_get_function_sqlbody(o) AS NULL::VARCHAR",
    "pg_tablespace_location(o) AS ''::VARCHAR",
    "pg_partition_tree(o) AS TABLE SELECT 0::UINTEGER AS relid, 0::UINTEGER AS parentrelid, true AS isleaf, 0 AS level "
    "WHERE false",
    "pg_partition_ancestors(o) AS unnest([]::UINTEGER[])",
    "pg_get_statisticsobjdef_columns(o) AS NULL::VARCHAR",
    "pg_get_serial_sequence(t, c) AS NULL::VARCHAR",
    "pg_get_userbyid(o) AS CASE WHEN o = 10 THEN 'sfumato' ELSE 'unknown (OID=' || o || ')' END",
    "pg_encoding_to_char(n) AS CASE WHEN n = 6 THEN 'UTF8' ELSE '' END",
    "getdatabaseencoding() AS 'UTF8'",
    "pg_char_to_encoding(n) AS CASE WHEN upper(n) IN ('UTF8', 'UTF-8') THEN 6 ELSE -1 END",
    # visibility and privileges: what a catalog lists may be seen, and nothing may be changed
    "pg_table_is_visible(o) AS coalesce((SELECT bool_or(_c.relnamespace IN (11, 2200)) FROM cat.pg_class _c WHERE "
    "_c.oid = o), false)",
    *(
        f"pg_{kind}_is_visible(o) AS true"
        for kind in (
            "type", "collation", "function", "operator", "opclass", "opfamily", "conversion", "statistics_obj",
            "ts_config", "ts_dict", "ts_parser", "ts_template",
        )
    ),
    "pg_relation_is_publishable(o) AS false",
    "pg_is_in_recovery() AS false",
    "pg_is_other_temp_schema(o) AS false",
    "pg_my_temp_schema() AS 0::UINTEGER",
    *(
        f"{name}(a, b) AS lower(b) IN ('select', 'usage', 'connect', 'execute', 'set'), (a, b, c) AS lower(c) IN "
        "('select', 'usage', 'connect', 'execute', 'set')"
        for name in (
            "has_table_privilege", "has_schema_privilege", "has_database_privilege", "has_any_column_privilege",
            "has_function_privilege", "has_type_privilege", "has_sequence_privilege",
        )
    ),
    "has_column_privilege(a, b, c) AS lower(c) = 'select', (a, b, c, d) AS lower(d) = 'select'",
    "pg_has_role(a, b) AS true, (a, b, c) AS true",
    # sizes and activity: nothing is measured
    "pg_relation_size(o) AS 0::BIGINT, (o, f) AS 0::BIGINT",
    *(f"{name}(o) AS 0::BIGINT" for name in ("pg_table_size", "pg_total_relation_size", "pg_indexes_size",
                                                    "pg_tablespace_size")),
    "pg_database_size(o) AS 0::BIGINT",
    "pg_size_pretty(n) AS n || ' bytes'",
    "pg_postmaster_start_time() AS NULL::TIMESTAMP",
    "pg_stat_get_numscans(o) AS 0::BIGINT",
    "txid_current() AS 1::BIGINT",
    "pg_backend_pid() AS 0",
    "pg_advisory_unlock_all() AS ''",
    "inet_server_addr() AS NULL::VARCHAR",
    "inet_server_port() AS NULL::INTEGER",
    # arrays
    "array_upper(a, n) AS CASE WHEN len(a) > 0 AND n = 1 THEN len(a)::INTEGER END",
    "array_lower(a, n) AS CASE WHEN len(a) > 0 AND n = 1 THEN 1 END",
    "_pg_expandarray(a) AS unnest(list_transform(a, lambda x, i: {'x': x, 'n': i::INTEGER}))",
    "generate_subscripts(a, n) AS unnest(generate_series(1, len(a)))",
    "quote_ident(n) AS CASE WHEN regexp_full_match(n, '[a-z_][a-z0-9_$]*') THEN n ELSE '\"' || "
    "replace(n, '\"', '\"\"') || "
    "'\"' END",
    "parse_ident(n) AS string_split(replace(n, '\"', ''), '.')",
    "quote_literal(n) AS chr(39) || replace(n, chr(39), chr(39) || chr(39)) || chr(39)",
    "pg_get_keywords() AS TABLE SELECT unnest(['analyse', 'analyze', 'freeze', 'ilike', 'isnull', 'limit', 'notnull', "
    "'offset', 'returning', 'verbose']) AS word, 'R'::VARCHAR AS catcode, 'reserved'::VARCHAR AS catdesc",
    "pg_options_to_table(o) AS TABLE SELECT ''::VARCHAR AS option_name, ''::VARCHAR AS option_value WHERE false",
)  # fmt: skip

HELPERS = (
    "long_type_name(n) AS CASE n WHEN 'bool' THEN 'boolean' WHEN 'char' THEN '\"char\"' WHEN 'int8' THEN 'bigint' WHEN "
    "'int2' THEN 'smallint' WHEN 'int4' THEN 'integer' WHEN 'float4' THEN 'real' WHEN 'float8' THEN 'double precision' "
    "WHEN 'bpchar' THEN 'character' WHEN 'varchar' THEN 'character varying' WHEN 'time' THEN 'time without time zone' "
    "WHEN 'timestamp' THEN 'timestamp without time zone' WHEN 'timestamptz' THEN 'timestamp with time zone' WHEN "
    "'timetz' THEN 'time with time zone' WHEN 'varbit' THEN 'bit varying' ELSE n END",
    "key_names(o, k) AS (SELECT string_agg(_a.attname, ', ' ORDER BY list_position(k, _a.attnum)) FROM "
    "cat.pg_attribute _a "
    "WHERE _a.attrelid = o AND list_contains(k, _a.attnum))",
    "key_text(o) AS (SELECT min('PRIMARY KEY (' || key_names(_c.conrelid, _c.conkey) || ')') FROM cat.pg_constraint _c "
    "WHERE _c.oid = o)",
    "index_text(o) AS (SELECT min('CREATE UNIQUE INDEX ' || _c.relname || ' ON public.' || _t.relname || "
    "' USING btree (' "
    "|| key_names(_i.indrelid, _i.indkey) || ')') FROM cat.pg_index _i JOIN cat.pg_class _c ON _c.oid = "
    "_i.indexrelid JOIN "
    "cat.pg_class _t ON _t.oid = _i.indrelid WHERE _i.indexrelid = o)",
    "comment_text(o) AS (SELECT min(_d.description) FROM cat.pg_description _d WHERE _d.objoid = o AND "
    "_d.objsubid = 0)",
)
"""Macros that other macros use; a query cannot name them."""

_BUILT_IN = """
    abs all and any array array_agg array_append array_cat array_concat array_contains array_length array_remove
    array_size array_to_string avg bool_and bool_or case cast ceil coalesce concat concat_ws count current_date
    current_timestamp exists exploding_generate_series explode floor format generate_series greatest
    group_concat if ilike initcap json_object left length like listagg logical_and logical_or lower ltrim
    max md5 min mod nullif now or pi position power printf regexp_i_like regexp_ilike regexp_like
    regexp_replace replace reverse right round row_number rtrim sign split_part sqrt starts_with
    str_position string_agg string_to_array strpos substring substr sum to_char trim try_cast unnest upper xor
"""

TABLE_FUNCTIONS = frozenset(macro.split("(", 1)[0] for macro in MACROS if " AS TABLE " in macro)
"""Those that give a table; all others give a value, or a list of rows of one column."""
ALLOWED = frozenset(macro.split("(", 1)[0] for macro in MACROS) | frozenset(_BUILT_IN.split())
"""Functions that a query on the catalogs may call, in lower case."""
