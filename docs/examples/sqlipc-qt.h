/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The types that the annotations of org.sqlipc1.*.xml name, for code that qdbusxml2cpp generates:
 *
 *      qdbusxml2cpp -i sqlipc-qt.h -p manager org.sqlipc1.Manager.xml
 *      qdbusxml2cpp -i sqlipc-qt.h -p database org.sqlipc1.Database.xml
 *
 * Call sqlipc_qt_register() once before the first use of a proxy.
 */
#ifndef SQLIPC_DOCS_EXAMPLES_SQLIPC_QT_H
#define SQLIPC_DOCS_EXAMPLES_SQLIPC_QT_H

#include <QtDBus/QtDBus>

/* Each struct corresponds to a D-Bus struct: its members have the same order, and the a{sv} at the end is `more`. */
struct SqlipcColumn {
        QString name, declaredType;
        QVariantMap more;
};
struct SqlipcDatabase {
        QString name;
        QDBusObjectPath path;
        QVariantMap more;
};
/* A statement, a run or a channel. */
struct SqlipcActivity {
        qulonglong number;
        QDBusObjectPath database;
        QString owner;
        QVariantMap more;
};
/* For ExecuteBatch. */
struct SqlipcStatement {
        QString sql;
        QVariantList positional;
        QVariantMap named;
};
struct SqlipcClient {
        QString name;
        QVariantMap more;
};

typedef QList<SqlipcColumn> SqlipcColumns;
typedef QList<SqlipcDatabase> SqlipcDatabases;
typedef QList<SqlipcActivity> SqlipcActivities;
typedef QList<SqlipcStatement> SqlipcStatements;
typedef QList<SqlipcClient> SqlipcClients;
typedef QList<QVariantList> SqlipcRows;
typedef QList<qlonglong> SqlipcChanges;
typedef QMap<QString, qulonglong> SqlipcLimits;

Q_DECLARE_METATYPE(SqlipcColumn)
Q_DECLARE_METATYPE(SqlipcDatabase)
Q_DECLARE_METATYPE(SqlipcActivity)
Q_DECLARE_METATYPE(SqlipcStatement)
Q_DECLARE_METATYPE(SqlipcClient)

inline QDBusArgument &operator<<(QDBusArgument &a, const SqlipcColumn &c) {
        a.beginStructure();
        a << c.name << c.declaredType << c.more;
        a.endStructure();
        return a;
}

inline const QDBusArgument &operator>>(const QDBusArgument &a, SqlipcColumn &c) {
        a.beginStructure();
        a >> c.name >> c.declaredType >> c.more;
        a.endStructure();
        return a;
}

inline QDBusArgument &operator<<(QDBusArgument &a, const SqlipcDatabase &d) {
        a.beginStructure();
        a << d.name << d.path << d.more;
        a.endStructure();
        return a;
}

inline const QDBusArgument &operator>>(const QDBusArgument &a, SqlipcDatabase &d) {
        a.beginStructure();
        a >> d.name >> d.path >> d.more;
        a.endStructure();
        return a;
}

inline QDBusArgument &operator<<(QDBusArgument &a, const SqlipcActivity &s) {
        a.beginStructure();
        a << s.number << s.database << s.owner << s.more;
        a.endStructure();
        return a;
}

inline const QDBusArgument &operator>>(const QDBusArgument &a, SqlipcActivity &s) {
        a.beginStructure();
        a >> s.number >> s.database >> s.owner >> s.more;
        a.endStructure();
        return a;
}

inline QDBusArgument &operator<<(QDBusArgument &a, const SqlipcStatement &s) {
        a.beginStructure();
        a << s.sql << s.positional << s.named;
        a.endStructure();
        return a;
}

inline const QDBusArgument &operator>>(const QDBusArgument &a, SqlipcStatement &s) {
        a.beginStructure();
        a >> s.sql >> s.positional >> s.named;
        a.endStructure();
        return a;
}

inline QDBusArgument &operator<<(QDBusArgument &a, const SqlipcClient &c) {
        a.beginStructure();
        a << c.name << c.more;
        a.endStructure();
        return a;
}

inline const QDBusArgument &operator>>(const QDBusArgument &a, SqlipcClient &c) {
        a.beginStructure();
        a >> c.name >> c.more;
        a.endStructure();
        return a;
}

inline void sqlipc_qt_register() {
        qDBusRegisterMetaType<SqlipcColumn>();
        qDBusRegisterMetaType<SqlipcColumns>();
        qDBusRegisterMetaType<SqlipcDatabase>();
        qDBusRegisterMetaType<SqlipcDatabases>();
        qDBusRegisterMetaType<SqlipcActivity>();
        qDBusRegisterMetaType<SqlipcActivities>();
        qDBusRegisterMetaType<SqlipcStatement>();
        qDBusRegisterMetaType<SqlipcStatements>();
        qDBusRegisterMetaType<SqlipcClient>();
        qDBusRegisterMetaType<SqlipcClients>();
        qDBusRegisterMetaType<SqlipcRows>();
        qDBusRegisterMetaType<SqlipcChanges>();
        qDBusRegisterMetaType<SqlipcLimits>();
}

#endif
